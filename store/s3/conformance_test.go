package s3_test

import (
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/s3"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
	"github.com/tidefill/tidefill/store/storetest"
)

func TestBlobs(t *testing.T) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			url := start(t).URL
			storetest.TestBlobs(t, func(t *testing.T) store.Blobs {
				return open(t, config(t, url)).Blobs()
			})
		})
	}
}

func TestJournals(t *testing.T) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			url := start(t).URL
			storetest.TestJournals(t, func(t *testing.T) (here, there store.Journals) {
				bucket, registry := open(t, config(t, url)), registrytest.NewMemory(time.Now)
				return openJournals(t, bucket, registry), openJournals(t, bucket, registry)
			})
		})
	}
}

var starts = map[string]func(testing.TB) *servers.Server{
	"versitygw": servers.Start, "gofakes3": servers.StartGofakes3,
}

// config returns the configuration of a new prefix.
func config(t testing.TB, url string) s3.Config {
	t.Helper()
	c := s3.DefaultConfig()
	c.Endpoint, c.Bucket, c.PathStyle = url, servers.Bucket, true
	c.Prefix = "p" + time.Now().Format("150405.000000000")
	c.AccessKeyFile, c.SecretKeyFile = servers.Secrets(t)
	return c
}

func open(t testing.TB, c s3.Config) *s3.Bucket {
	t.Helper()
	b, err := s3.Open(t.Context(), c, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func openJournals(
	t testing.TB, objects segments.Objects, registry segments.Registry,
) *segments.Journals {
	t.Helper()
	js, err := segments.Open(t.Context(), objects, registry, segments.Options{
		CommitAfter: 50 * time.Millisecond, CommitFewAfter: 100 * time.Millisecond,
		CommitGap: 10 * time.Millisecond, RetryAfter: 50 * time.Millisecond, CompactCount: 4,
		SweepAge: 3 * time.Second, DeleteAfter: time.Nanosecond,
		DeleteEvery: 50 * time.Millisecond, SweepEvery: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := js.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return js
}
