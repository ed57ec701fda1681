package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// storing is a daemon whose profile has a storage, and a stub.
type storing struct {
	*Daemon
	t    *testing.T
	sdk  *openai.Client
	stub *Stub
	// root is the directory in which the objects of the storage are files.
	root    string
	secrets string
}

// newStoring starts a daemon with the profiles "stored", which has a storage, and "plain", which
// has none. Lines whose body contains "refused" are answered 400.
func newStoring(t *testing.T, root, storage string) *storing {
	t.Helper()
	s := &storing{t: t, stub: NewStub(t, "m"), root: root, secrets: t.TempDir()}
	s.stub.Intercept(refuse)
	dir := newRegistryDir(t)
	dir.profiles(profileOf("stored", "{storage: "+storage+"}"), profileOf("plain", "{}"))
	s.Daemon = NewDaemon(t, Options{Upstreams: []string{s.stub.URL}, Keys: "own=" + ownKey,
		Admin: freeAddress(t), Set: []string{"registry.dir=" + dir.path,
			"registry.secrets_dir=" + s.secrets, "flowcontrol.policy=unlimited"}})
	s.sdk = sdk(s.Daemon, ownKey, option.WithMaxRetries(0))
	return s
}

// refuse answers 400 to lines whose body contains "refused".
func refuse(w http.ResponseWriter, _ *http.Request, body []byte) bool {
	if !bytes.Contains(body, []byte("refused")) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `{"error":{"message":"no","type":"t","param":null,"code":null}}`)
	return true
}

// secret writes a Secret's keys.
func (s *storing) secret(name string) {
	s.t.Helper()
	for key, value := range map[string]string{"access-key-id": s3.AccessKey,
		"secret-access-key": s3.SecretKey} {
		path := filepath.Join(s.secrets, name, key)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(value+"\n"), 0o600)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// objects returns the files below a directory, by path.
func objects(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
			return nil
		}
		all[path] = string(content)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

// results returns the objects of the storage that are results.
func (s *storing) results() map[string]string {
	s.t.Helper()
	found := objects(s.t, s.root)
	for path := range found {
		if !strings.Contains(path, "blobs/results/") {
			delete(found, path)
		}
	}
	return found
}

// read reads a file by the SDK.
func (s *storing) read(id string) string {
	s.t.Helper()
	response, err := s.sdk.Files.Content(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("content of %s: %v: %s", id, err, reason(err))
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// isIn fails the test unless a content is one object of the storage and nowhere in the data of the
// daemon.
func (s *storing) isIn(what, content string) {
	s.t.Helper()
	in := 0
	for _, object := range s.results() {
		if object == content {
			in++
		}
	}
	if in != 1 {
		s.t.Errorf("%s is in %d objects of the storage, want 1", what, in)
	}
	line, _, _ := strings.Cut(content, "\n")
	for path, object := range objects(s.t, filepath.Join(s.Data, "blobs")) {
		if strings.Contains(object, line) {
			s.t.Errorf("%s is in the daemon's data as well: %s", what, path)
		}
	}
}

// check runs the life of a batch's results in a storage.
func (s *storing) check() {
	s.t.Helper()
	c, client := s.sdk, s.Client()
	lines := NewLines("good", "m", 20)
	bad := NewLines("refused", "m", 3)
	lines.Content = append(lines.Content, bad.Content...)
	for id, body := range bad.Bodies {
		lines.Bodies[id] = body
	}
	b := endIn(s.t, s.Daemon, c, lines, inProfile("stored"))
	if b.Status != "completed" || b.OutputFileID == nil || b.ErrorFileID == nil {
		s.t.Fatalf("the batch ended %s with files %v, %v", b.Status, b.OutputFileID, b.ErrorFileID)
	}
	if sum := client.CheckOnce(s.t, b, lines); sum.Output != 20 || sum.Failed != 3 {
		s.t.Errorf("%+v, want 20 lines in the output and 3 errors", sum)
	}
	output, failed := s.read(*b.OutputFileID), s.read(*b.ErrorFileID)
	s.isIn("the output", output)
	s.isIn("the error file", failed)

	page, err := c.Files.List(s.t.Context(), openai.FileListParams{})
	if err != nil {
		s.t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, f := range page.Data {
		sizes[f.ID] = f.Bytes
	}
	if sizes[*b.OutputFileID] != int64(len(output)) || sizes[*b.ErrorFileID] != int64(len(failed)) {
		s.t.Errorf("the list of files has sizes %v, want %d and %d", sizes, len(output),
			len(failed))
	}

	s.stub.Intercept(nil)
	var retried Batch
	if err := client.json("POST", "/v1/batches/"+b.ID+"/retry", "application/json",
		strings.NewReader("{}"), &retried); err != nil {
		s.t.Fatal(err)
	}
	retried = endOf(s.t, s.Daemon, retried.ID)
	client.CheckComplete(s.t, retried, bad)
	s.isIn("the output of the retry", s.read(*retried.OutputFileID))

	s.Restart()
	if again := s.read(*b.OutputFileID); again != output {
		s.t.Error("after a restart, the output is another one")
	}
	for _, id := range []string{*b.OutputFileID, *b.ErrorFileID, *retried.OutputFileID} {
		if deleted, err := c.Files.Delete(s.t.Context(), id); err != nil || !deleted.Deleted {
			s.t.Errorf("delete %s: %v", id, err)
		}
		if _, err := c.Files.Content(s.t.Context(), id); sdkStatus(err) != http.StatusNotFound {
			s.t.Errorf("the content of the deleted file %s: %v", id, err)
		}
	}
	await(s.t, 10*time.Second, "the bytes of deleted files are gone", func() bool {
		return len(s.results()) == 0
	})
}

func TestProfileStorageInADirectory(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "results")
	newStoring(t, root, fmt.Sprintf("{backend: local, bucket: %q}", root)).check()
}

func TestProfileStorageInABucket(t *testing.T) {
	t.Parallel()
	server := s3.Start(t)
	s := newStoring(t, server.Directory, fmt.Sprintf("{backend: s3, bucket: %s, endpoint_url: %q, "+
		"region: us-east-1, credentials_secret_ref: keys}", s3.Bucket, server.URL))
	s.secret("keys")
	s.check()
	s.hidesSecrets()
}

// hidesSecrets fails the test if a key is in the log, or in an answer.
func (s *storing) hidesSecrets() {
	s.t.Helper()
	all, err := s.Client().Do("GET", "/v1/batches", "", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for where, text := range map[string]string{"the log": s.Log(), "the batches": string(all.Body),
		"/readyz": readText(s.t, s.Daemon, "/readyz"), "/metrics": readText(s.t, s.Daemon,
			"/metrics"), "the registry": readText(s.t, s.Daemon, "/admin/registry")} {
		for _, secret := range []string{s3.AccessKey, s3.SecretKey} {
			if strings.Contains(text, secret) {
				s.t.Errorf("%s has the key %s", where, secret)
			}
		}
	}
}

// While the bucket of a profile is away, or has no credentials, its batches stay finalizing and say
// so, and others end. They end once it is back, also if the daemon was killed meanwhile, with each
// result once.
func TestProfileStorageIsAway(t *testing.T) {
	t.Parallel()
	server := s3.Start(t)
	proxy := s3.StartProxy(t, server)
	s := newStoring(t, server.Directory, fmt.Sprintf("{backend: minio, bucket: %s, "+
		"endpoint_url: %q, credentials_secret_ref: keys}", s3.Bucket, proxy.URL))
	client := s.Client()
	waits := func(b Batch, cause string) {
		t.Helper()
		client.Await(t, b.ID, 20*time.Second, func(b Batch) bool {
			return b.Status == "finalizing" && b.WaitsFor("storage_away") &&
				strings.Contains(*b.Tidefill.Waiting, cause)
		})
	}
	create := func(lines Lines, profile string) Batch {
		t.Helper()
		b, err := client.Batch(createIn(t, s.sdk, lines, inProfile(profile)).ID)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	first, other := NewLines("first", "m", 20), NewLines("other", "m", 20)
	b := create(first, "stored")
	waits(b, "the Secret keys has no key access-key-id")
	client.CheckComplete(t, endOf(t, s.Daemon, create(other, "plain").ID), other)
	s.secret("keys")
	client.CheckComplete(t, endOf(t, s.Daemon, b.ID), first)

	proxy.Choose(func(*http.Request) s3.Fault { return s3.Error })
	second, third := NewLines("second", "m", 20), NewLines("third", "m", 20)
	c := create(second, "stored")
	waits(c, "it does not answer")
	client.CheckComplete(t, endOf(t, s.Daemon, create(third, "plain").ID), third)
	if now, err := client.Batch(b.ID); err != nil || now.OutputFileID == nil {
		t.Fatalf("%v, %+v", err, now)
	} else if answer, err := client.Do("GET", "/v1/files/"+*now.OutputFileID+"/content", "",
		nil); err != nil || answer.Status != http.StatusServiceUnavailable ||
		answer.Header.Get("Retry-After") == "" || *answer.APIError(t).Code != "storage_away" {
		t.Errorf("a file of a bucket that is away: %v, %d %s", err, answer.Status, answer.Body)
	}
	s.stub.Intercept(func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if bytes.Contains(body, []byte("cancelled")) {
			<-r.Context().Done()
		}
		return false
	})
	cancelled := create(NewLines("cancelled", "m", 5), "stored")
	await(t, 10*time.Second, "lines are in flight", func() bool { return s.stub.InFlight() == 5 })
	if _, err := s.sdk.Batches.Cancel(t.Context(), cancelled.ID); err != nil {
		t.Fatal(err)
	}
	client.Await(t, cancelled.ID, 20*time.Second, func(b Batch) bool {
		return b.Status == "cancelling" && b.WaitsFor("storage_away")
	})
	s.Restart()
	waits(c, "it does not answer")
	proxy.Choose(func(r *http.Request) s3.Fault { // the next try is killed while it writes
		if r.Method == http.MethodPut {
			return s3.Stall
		}
		return s3.None
	})
	before := proxy.Failed()
	await(t, 30*time.Second, "results are being written", func() bool {
		return proxy.Failed() > before
	})
	s.Kill()
	proxy.Choose(nil)
	s.Start()
	s.AwaitReady()
	client.CheckComplete(t, endOf(t, s.Daemon, c.ID), second)
	if b := endOf(t, s.Daemon, cancelled.ID); b.Status != "cancelled" ||
		b.ErrorFileID == nil || strings.Count(s.read(*b.ErrorFileID), "batch_cancelled") != 5 {
		t.Errorf("the cancelled batch ended %s, error file %v", b.Status, b.ErrorFileID)
	}
	if n := len(s.results()); n != 3 {
		t.Errorf("the bucket has %d results, want those of 3 batches: %q", n,
			slices.Collect(maps.Keys(s.results())))
	}
	if n := s.stub.Repeats(); n > 0 {
		t.Errorf("%d lines were sent again", n)
	}
	s.hidesSecrets()
}
