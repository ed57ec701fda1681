{{/*
The pod of a StatefulSet or a Deployment. The argument has root, which is the chart's context, and component, which is
what the pod does: an entry of tidefill.components.
*/}}
{{- define "tidefill.pod" -}}
{{- $component := .component }}
{{- with .root }}
{{- $scheme := include "tidefill.scheme" . | upper }}
{{- $mounts := dict "config" "/etc/tidefill" "keys" "/etc/tidefill-keys" }}
{{- $secrets := dict "keys" (include "tidefill.keysSecret" .) }}
{{- with .Values.tls.secret }}
{{- $_ := set $mounts "tls" "/etc/tidefill-tls" }}
{{- $_ := set $secrets "tls" . }}
{{- end }}
{{- with .Values.scaler.tls.secret }}
{{- $_ := set $mounts "scaler-tls" "/etc/tidefill-scaler-tls" }}
{{- $_ := set $secrets "scaler-tls" . }}
{{- end }}
{{- range $i, $secret := .Values.registry.secrets }}
{{- $_ := set $mounts (printf "registry-%d" $i) (printf "/etc/tidefill-registry/%s" $secret) }}
{{- $_ := set $secrets (printf "registry-%d" $i) $secret }}
{{- end }}
{{- $store := include "tidefill.storeSecrets" . | fromYamlArray }}
{{- if $store }}
{{- $_ := set $mounts "store" "/etc/tidefill-store" }}
{{- end }}
metadata:
  labels:
    {{- include "tidefill.podSelector" (dict "root" . "component" $component) | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # The daemon applies changes of the omitted sections by itself.
    tidefill/config: {{ omit (include "tidefill.config" . | fromYaml) "upstreams" "flowcontrol" "scheduler" | toYaml | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "tidefill.serviceAccount" . }}
  automountServiceAccountToken: {{ or (and $component.dispatches (not (empty (include "tidefill.usesKubernetes" .)))) (not (empty (include "tidefill.readsRegistry" .))) }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: tidefill
      image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/tidefill/tidefill.yaml{{ with $component.roles }}, --roles, {{ quote . }}{{ end }}]
      {{- with .Values.env }}
      env: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.envFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        {{- if $component.servesAPI }}
        - {name: api, containerPort: 8080}
        {{- end }}
        - {name: admin, containerPort: 8081}
        {{- if and .Values.config.pools $component.dispatches }}
        - {name: scaler, containerPort: 9090}
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: admin, scheme: {{ $scheme }}}
        periodSeconds: 2
        failureThreshold: 150 # a new release may update a large database
      livenessProbe:
        httpGet: {path: /healthz, port: admin, scheme: {{ $scheme }}}
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: admin, scheme: {{ $scheme }}}
        periodSeconds: 5
        timeoutSeconds: 5
      resources: {{- include "tidefill.resources" (dict "root" . "component" $component) | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /var/lib/tidefill}
        {{- range $volume, $path := $mounts }}
        - {name: {{ $volume }}, mountPath: {{ $path }}, readOnly: true}
        {{- end }}
  volumes:
    - {name: config, configMap: {name: {{ include "tidefill.name" . }}}}
    {{- range $volume, $secret := $secrets }}
    - {name: {{ $volume }}, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
    {{- end }}
    {{- if $store }}
    - name: store
      projected:
        defaultMode: 0440
        sources:
          {{- range $store }}
          - secret: {{ toJson . }}
          {{- end }}
    {{- end }}
    {{- if include "tidefill.onCluster" . }}
    - name: data # temporary files alone
      emptyDir: {{ .Values.temporary.sizeLimit | empty | ternary dict (dict "sizeLimit" .Values.temporary.sizeLimit) | toJson }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "tidefill.affinity" (dict "root" . "component" $component) | fromYaml }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "tidefill.spread" (dict "root" . "component" $component) | fromYamlArray }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Requests and limits of the container. The cluster store holds parts of objects in memory. */}}
{{- define "tidefill.resources" -}}
{{- $memory := include "tidefill.onCluster" .root | empty | ternary (list "256Mi" "512Mi") (list "512Mi" "1Gi") }}
{{- $resources := dict "requests" (dict "cpu" "1" "memory" (index $memory 0)) "limits" (dict "memory" (index $memory 1)) }}
{{- $_ := mergeOverwrite $resources (deepCopy .root.Values.resources) }}
{{- if eq .component.label "dispatch" }}
{{- $_ := mergeOverwrite $resources (deepCopy .root.Values.dispatch.resources) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{/* Several replicas prefer different nodes; affinity.podAntiAffinity replaces that. */}}
{{- define "tidefill.affinity" -}}
{{- $affinity := dict }}
{{- if gt (int .component.replicas) 1 }}
{{- $labels := include "tidefill.podSelector" . | fromYaml }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) }}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution"
  (list (dict "weight" 100 "podAffinityTerm" $term))) }}
{{- end }}
{{- range $kind, $value := .root.Values.affinity }}{{ $_ := set $affinity $kind $value }}{{ end }}
{{- toYaml $affinity }}
{{- end }}

{{/* Several replicas are spread over zones, those of each release of the pod by itself. */}}
{{- define "tidefill.spread" -}}
{{- $spread := .root.Values.topologySpreadConstraints }}
{{- if and (empty $spread) (gt (int .component.replicas) 1) }}
{{- $spread = list (dict "maxSkew" 1 "topologyKey" "topology.kubernetes.io/zone" "whenUnsatisfiable" "ScheduleAnyway"
  "labelSelector" (dict "matchLabels" (include "tidefill.podSelector" . | fromYaml))
  "matchLabelKeys" (list "pod-template-hash")) }}
{{- end }}
{{- toYaml $spread }}
{{- end }}
