package places_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/places"
	"github.com/tidefill/tidefill/store/storetest"
)

// open returns places that are closed with the test.
func open(t testing.TB, o places.Options) *places.Places {
	t.Helper()
	p := places.New(o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func directory(path string) store.Storage {
	return store.Storage{Backend: "local", Bucket: path}
}

// write commits a blob.
func write(t testing.TB, b store.Blobs, key, content string) error {
	t.Helper()
	w, err := b.Create(t.Context(), key)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := io.WriteString(w, content); err != nil {
		return err
	}
	return w.Commit(t.Context())
}

func read(t testing.TB, b store.Blobs, key string) (string, error) {
	t.Helper()
	o, err := b.Open(t.Context(), key)
	if err != nil {
		return "", err
	}
	defer o.Close()
	content, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	return string(content), err
}

// wantAway fails the test unless the error is that of a storage, with these words in its cause.
func wantAway(t testing.TB, err error, words string) {
	t.Helper()
	var away *store.StorageError
	if !errors.As(err, &away) || !errors.Is(err, store.ErrUnavailable) ||
		errors.Is(err, store.ErrNotFound) {
		t.Fatalf("got %v, want an error of the storage", err)
	}
	if !strings.Contains(away.Cause, words) {
		t.Errorf("got cause %q, want one with %q", away.Cause, words)
	}
}

// wantWorks writes and reads a blob.
func wantWorks(t testing.TB, b store.Blobs) {
	t.Helper()
	key := store.ResultKey("batch_1", "file-1", 2)
	must(t, write(t, b, key, "result"))
	if got, err := read(t, b, key); err != nil || got != "result" {
		t.Fatalf("read %q: %v", got, err)
	}
	page, err := b.List(t.Context(), store.ResultsOf("batch_1"), "", 0)
	if err != nil || len(page) != 1 || page[0].Key != key ||
		store.BatchOfResult(page[0].Key) != "batch_1" {
		t.Fatalf("listed %v: %v", page, err)
	}
	must(t, b.Delete(t.Context(), key))
	if _, err := read(t, b, key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v after the deletion, want ErrNotFound", err)
	}
}

func TestDirectoryHoldsBlobs(t *testing.T) {
	storetest.TestBlobs(t, func(t *testing.T) store.Blobs {
		return open(t, places.Options{}).Of(directory(filepath.Join(t.TempDir(), "new")))
	})
}

func TestDirectoryMustBeOutsideOfTheData(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "data")
	must(t, os.Mkdir(data, 0o700))
	must(t, os.Symlink(data, filepath.Join(root, "link")))
	p := open(t, places.Options{Data: data})
	for dir, words := range map[string]string{
		"relative":                            "absolute",
		data:                                  "inside the data directory",
		filepath.Join(data, "results"):        "inside the data directory",
		filepath.Join(root, "link"):           "inside the data directory",
		filepath.Join(root, "link", "x"):      "inside the data directory",
		filepath.Join(root, "a", "b"):         "directory can't be used", // without its parent
		filepath.Join(root, "data", "..", ""): "",
		filepath.Join(root, "database"):       "",
	} {
		err := write(t, p.Of(directory(dir)), "results/b/f.1", "x")
		if words == "" {
			if err != nil {
				t.Errorf("%s: %v", dir, err)
			}
			continue
		}
		wantAway(t, err, words)
	}
	if made, _ := filepath.Glob(filepath.Join(data, "*")); len(made) > 0 {
		t.Errorf("the data directory has %q", made)
	}
}

func TestExistingDirectoriesOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	_, err := read(t, open(t, places.Options{Existing: true}).Of(directory(dir)), "results/b/f.1")
	wantAway(t, err, "directory can't be used")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}

// A directory that was moved away works again when it is back, also without its being opened anew.
func TestDirectoryComesBack(t *testing.T) {
	root := t.TempDir()
	dir, elsewhere := filepath.Join(root, "results"), filepath.Join(root, "elsewhere")
	b := open(t, places.Options{AskAfter: time.Millisecond}).Of(directory(dir))
	wantWorks(t, b)
	must(t, write(t, b, "results/b/f.1", "x"))
	must(t, os.Rename(dir, elsewhere))
	_, err := read(t, b, "results/b/f.1")
	wantAway(t, err, "directory can't be used")
	if strings.Contains(err.(*store.StorageError).Cause, root) {
		t.Errorf("the cause for users names a path: %q", err.(*store.StorageError).Cause)
	}
	must(t, os.Rename(elsewhere, dir))
	eventually(t, func() bool {
		got, err := read(t, b, "results/b/f.1")
		return err == nil && got == "x"
	})
}

func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never happened")
		}
	}
}

// secret makes the files of a Secret.
func secret(t testing.TB, dir, name string, values ...string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	for i := 0; i < len(values); i += 2 {
		must(t, os.WriteFile(filepath.Join(dir, name, values[i]), []byte(values[i+1]+"\n"), 0o600))
	}
}

func TestBucketsOfEachBackend(t *testing.T) {
	url, secrets := servers.Start(t).URL, t.TempDir()
	secret(t, secrets, "keys", "access-key-id", servers.AccessKey, "secret-access-key",
		servers.SecretKey)
	secret(t, secrets, "tos", "access-key", servers.AccessKey, "secret-key", servers.SecretKey,
		"endpoint", url, "region", "us-east-1")
	p := open(t, places.Options{SecretsDir: secrets})
	for _, s := range []store.Storage{
		{Backend: "s3", EndpointURL: url, Credentials: "keys"},
		{Backend: "s3", EndpointURL: url, Credentials: filepath.Join(secrets, "keys")},
		{Backend: "minio", EndpointURL: url, Credentials: "keys"},
		{Backend: "tos", Credentials: "tos"},
		{Backend: "gcs", EndpointURL: url, Region: "us-east-1", Credentials: "keys"},
	} {
		s.Bucket = servers.Bucket
		t.Run(s.Backend, func(t *testing.T) { wantWorks(t, p.Of(s)) })
	}
}

// Credentials that are missing or wrong are no end: those that are corrected are used at once, and
// the open client is replaced.
func TestCredentialsAreReadAtUse(t *testing.T) {
	url, secrets := servers.Start(t).URL, t.TempDir()
	b := open(t, places.Options{SecretsDir: secrets, AskAfter: time.Hour}).Of(store.Storage{
		Backend: "minio", Bucket: servers.Bucket, EndpointURL: url, Credentials: "keys"})
	try := func() error { return write(t, b, "results/b/f.1", "x") }

	wantAway(t, try(), "the Secret keys has no key access-key-id")
	secret(t, secrets, "keys", "access-key-id", servers.AccessKey)
	wantAway(t, try(), "the Secret keys has no key secret-access-key")
	secret(t, secrets, "keys", "secret-access-key", "not-the-key")
	err := try()
	wantAway(t, err, "refuses the requests of the daemon")
	for _, word := range []string{"not-the-key", servers.AccessKey, servers.SecretKey} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("the error has a key: %v", err)
		}
	}
	secret(t, secrets, "keys", "secret-access-key", servers.SecretKey)
	must(t, try())
	secret(t, secrets, "keys", "secret-access-key", "another")
	wantAway(t, try(), "refuses the requests of the daemon")
	secret(t, secrets, "keys", "secret-access-key", servers.SecretKey)
	must(t, try())
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	secrets := t.TempDir()
	secret(t, filepath.Dir(secrets), "outside", "access-key-id", "a", "secret-access-key", "b")
	secret(t, secrets, "gcs", "service-account.json", "{}")
	secret(t, secrets, "tos", "access-key", "a", "secret-key", "b")
	p, none := open(t, places.Options{SecretsDir: secrets}), open(t, places.Options{})
	for _, c := range []struct {
		p       *places.Places
		s       store.Storage
		message string
	}{
		{p, store.Storage{Backend: "s3", Credentials: "../outside"}, "the name of a Secret"},
		{p, store.Storage{Backend: "s3", Credentials: ".."}, "the name of a Secret"},
		{p, store.Storage{Backend: "s3", Credentials: "a/b"}, "the name of a Secret"},
		{none, store.Storage{Backend: "s3", Credentials: "keys"}, "secrets_dir is not set"},
		{p, store.Storage{Backend: "gcs", Credentials: "gcs"}, "HMAC keys access-key-id"},
		{p, store.Storage{Backend: "tos", Credentials: "tos"}, "has an endpoint or a region"},
		{p, store.Storage{Backend: "minio"}, "no storage.endpoint_url"},
		{p, store.Storage{Backend: "s3", EndpointURL: "ftp://x"}, "endpoint: must be a URL"},
		{p, store.Storage{Backend: "tape"}, `the backend "tape"`},
	} {
		c.s.Bucket = "results"
		err := c.p.Of(c.s).Delete(t.Context(), "results/b/f.1")
		wantAway(t, err, c.message)
	}
}

// While a bucket does not answer one caller asks it now and then, and all others get its last error
// without delay.
func TestBucketComesBack(t *testing.T) {
	s, secrets := servers.Start(t), t.TempDir()
	proxy := servers.StartProxy(t, s)
	secret(t, secrets, "keys", "access-key-id", servers.AccessKey, "secret-access-key",
		servers.SecretKey)
	at := store.Storage{Backend: "minio", Bucket: servers.Bucket, EndpointURL: proxy.URL,
		Credentials: "keys"}
	b := open(t, places.Options{SecretsDir: secrets, AskAfter: time.Hour}).Of(at)
	wantWorks(t, b)
	proxy.Choose(func(*http.Request) servers.Fault { return servers.Error })
	for range 20 {
		wantAway(t, write(t, b, "results/b/f.1", "x"), "it does not answer")
	}
	if n := proxy.Failed(); n > 4 {
		t.Errorf("%d requests were sent to a bucket that is away, want those of one try", n)
	}
	quick := open(t, places.Options{SecretsDir: secrets, AskAfter: time.Millisecond}).Of(at)
	wantAway(t, write(t, quick, "results/b/f.1", "x"), "it does not answer")
	var writing sync.WaitGroup
	var refused atomic.Int64
	for i := range 8 {
		key := fmt.Sprint("results/b/f.", i)
		writing.Go(func() {
			for err := errors.New(""); err != nil; {
				if err = write(t, quick, key, "x"); err != nil {
					refused.Add(1)
				}
				if away := new(store.StorageError); err != nil && !errors.As(err, &away) {
					t.Errorf("got %v, want an error of the storage", err)
					return
				}
			}
		})
	}
	eventually(t, func() bool { return refused.Load() >= 100 })
	proxy.Choose(nil)
	writing.Wait()
}
