package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/places"
)

// inBuckets is a daemon whose tenant "own" may name a bucket behind a proxy.
type inBuckets struct {
	*storing
	server  *s3.Server
	proxy   *s3.Proxy
	objects *places.Shared
	config  string
}

func newInBuckets(t *testing.T) *inBuckets {
	t.Helper()
	b := &inBuckets{server: s3.Start(t), config: filepath.Join(t.TempDir(), "config.yaml")}
	b.proxy = s3.StartProxy(t, b.server)
	b.storing = &storing{t: t, stub: NewStub(t, "m"), secrets: t.TempDir()}
	b.secret("keys")
	b.stub.Intercept(refuse)
	b.configure("own")
	b.Daemon = NewDaemon(t, Options{Upstreams: []string{b.stub.URL}, Admin: freeAddress(t),
		Keys: "own=" + ownKey + ",foreign=" + foreignKey, Args: []string{"--config", b.config},
		Set: []string{"registry.secrets_dir=" + b.secrets, "flowcontrol.policy=unlimited"}})
	b.sdk = sdk(b.Daemon, ownKey, option.WithMaxRetries(0))
	p := places.New(places.Options{})
	t.Cleanup(func() { p.Close() })
	b.objects = p.Shared(store.Storage{Backend: "minio", Bucket: s3.Bucket,
		EndpointURL: b.server.URL, Credentials: filepath.Join(b.secrets, "keys")}, "")
	return b
}

// configure opens the bucket to a tenant.
func (b *inBuckets) configure(tenant string) {
	b.t.Helper()
	text := fmt.Appendf(nil, "buckets:\n- {name: team, bucket: %s, prefix: batch/, "+
		"backend: minio, endpoint_url: %q, credentials_secret_ref: keys, tenants: [%s], "+
		"access: read_write}\n", s3.Bucket, b.proxy.URL, tenant)
	if err := os.WriteFile(b.config, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

const teamURL = "s3://" + s3.Bucket + "/batch/"

// put stores an object below the prefix.
func (b *inBuckets) put(name string, content []byte) {
	b.t.Helper()
	w, err := b.objects.Create(b.t.Context(), "batch/"+name)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Commit(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// create creates a batch of an object, as users of SDKs do that require an input_file_id.
func (b *inBuckets) create(
	c *openai.Client, object string, options ...option.RequestOption,
) (*openai.Batch, error) {
	return c.Batches.New(b.t.Context(), newBatch(teamURL+object), append(options,
		option.WithJSONSet("tidefill.input_url", teamURL+object))...)
}

// isDelivered fails the test unless the results of a batch are objects, and the files of the API.
func (b *inBuckets) isDelivered(of Batch) {
	b.t.Helper()
	if to := of.Tidefill.Output; to == nil || !to.Delivered || to.Error != nil {
		b.t.Errorf("batch %s has the output %+v", of.ID, to)
	}
	want := map[string]string{}
	dir := filepath.Join(b.server.Directory, s3.Bucket, "batch", "out", of.ID)
	if of.OutputFileID != nil {
		want[filepath.Join(dir, "output.jsonl")] = b.read(*of.OutputFileID)
	}
	if of.ErrorFileID != nil {
		want[filepath.Join(dir, "errors.jsonl")] = b.read(*of.ErrorFileID)
	}
	got := objects(b.t, dir)
	if fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
		b.t.Errorf("batch %s has the objects %v, want %v", of.ID, got, want)
	}
}

func TestBucketInBucketOut(t *testing.T) {
	t.Parallel()
	b := newInBuckets(t)
	lines, bad := NewLines("good", "m", 20), NewLines("refused", "m", 3)
	lines.Content = append(lines.Content, bad.Content...)
	b.put("in/a b?.jsonl", lines.Content)
	out := option.WithJSONSet("tidefill.output_url", teamURL+"out/")
	made, err := b.create(b.sdk, "in/a b?.jsonl", out)
	if err != nil {
		t.Fatalf("create: %v: %s", err, reason(err))
	}
	ended := endOf(t, b.Daemon, made.ID)
	if ended.Status != "completed" || ended.RequestCounts.Completed != 20 ||
		ended.RequestCounts.Failed != 3 || b.read(ended.InputFileID) != string(lines.Content) {
		t.Errorf("got %+v", ended)
	}
	b.isDelivered(ended)

	b.put("rows.csv", []byte("id,text\nx,\"say \"\"hi\"\"\"\n"))
	made, err = b.create(b.sdk, "rows.csv", out, option.WithJSONSet("tidefill.csv.custom_id", "id"),
		option.WithJSONSet("tidefill.csv.body.model", "m"), option.WithJSONSet(
			"tidefill.csv.body.messages", []any{map[string]string{"role": "user",
				"content": "{{text}}"}}))
	if err != nil {
		t.Fatalf("create: %v: %s", err, reason(err))
	}
	b.isDelivered(endOf(t, b.Daemon, made.ID))

	// The bucket of another tenant, before and after the operator gives it to that.
	foreign := sdk(b.Daemon, foreignKey, option.WithMaxRetries(0))
	_, err = b.create(foreign, "rows.csv")
	wantError(t, err, http.StatusBadRequest, "bucket_not_allowed", "tidefill.input_url")
	b.configure("foreign")
	await(t, 20*time.Second, "the list of buckets is read again", func() bool {
		made, err = b.create(foreign, "in/a b?.jsonl")
		return err == nil
	})
	_, err = b.create(b.sdk, "rows.csv")
	wantError(t, err, http.StatusBadRequest, "bucket_not_allowed", "tidefill.input_url")
	b.hidesSecrets()
}

// The bucket is away when a batch ends. The daemon is killed meanwhile, and while it writes.
func TestBucketOutIsAway(t *testing.T) {
	t.Parallel()
	b := newInBuckets(t)
	lines := NewLines("away", "m", 20)
	b.put("in.jsonl", lines.Content)
	release := make(chan struct{})
	b.stub.Intercept(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	})
	made, err := b.create(b.sdk, "in.jsonl", option.WithJSONSet("tidefill.output_url",
		teamURL+"out/"))
	if err != nil {
		t.Fatalf("create: %v: %s", err, reason(err))
	}
	b.proxy.Choose(func(*http.Request) s3.Fault { return s3.Error })
	close(release)
	waits := func() {
		t.Helper()
		b.Client().Await(t, made.ID, 20*time.Second, func(b Batch) bool {
			return b.Status == "finalizing" && b.WaitsFor("storage_away") &&
				strings.Contains(*b.Tidefill.Waiting, "output_url") && !b.Tidefill.Output.Delivered
		})
	}
	waits()
	b.Kill()
	b.Start()
	b.AwaitReady()
	waits()
	b.proxy.Choose(func(r *http.Request) s3.Fault { // the next try is killed while it writes
		if r.Method == http.MethodPut {
			return s3.Stall
		}
		return s3.None
	})
	before := b.proxy.Failed()
	await(t, 90*time.Second, "results are being written", func() bool {
		return b.proxy.Failed() > before
	})
	b.Kill()
	b.proxy.Choose(nil)
	b.Start()
	b.AwaitReady()
	ended := endOf(t, b.Daemon, made.ID)
	b.Client().CheckComplete(t, ended, lines)
	b.isDelivered(ended)
	if n := b.stub.Repeats(); n > 0 {
		t.Errorf("%d lines were sent again", n)
	}
	b.hidesSecrets()
}
