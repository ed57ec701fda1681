# Build it of the files of a release:
# docker build -f deploy/image/release.Dockerfile --build-arg VERSION=v0.1.0 -t tidefill dist
FROM --platform=$BUILDPLATFORM alpine:3 AS archive
WORKDIR /src
ARG VERSION TARGETARCH
COPY tidefill_${VERSION}_linux_${TARGETARCH}.tar.gz ./
RUN mkdir -p /out/data && \
    tar -xzf tidefill_${VERSION}_linux_${TARGETARCH}.tar.gz -C /out/ --strip-components=1

FROM scratch
# For upstreams and webhooks with https URLs.
COPY --from=archive /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=archive /out/tidefill /tidefill
# Nothing is written elsewhere, so the root file system may be read-only.
COPY --from=archive --chown=65532:65532 /out/data /var/lib/tidefill
VOLUME /var/lib/tidefill
# A number, by which Kubernetes can see that it is not root.
USER 65532:65532
# The API, the admin address and the scaler.
EXPOSE 8080 8081 9090
STOPSIGNAL SIGTERM
ENTRYPOINT ["/tidefill"]
CMD ["serve", "--config", "/etc/tidefill/tidefill.yaml"]
