package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/store/places"
)

// bucketed is an API whose users may name a bucket of a real storage, behind a proxy.
type bucketed struct {
	*service
	proxy   *servers.Proxy
	secret  string // directory of the keys
	objects buckets.Objects
	list    *buckets.Buckets
	entry   buckets.Entry
}

func newBucketed(t *testing.T, edit ...func(*Config, *Deps)) *bucketed {
	t.Helper()
	server := servers.Start(t)
	b := &bucketed{proxy: servers.StartProxy(t, server), secret: t.TempDir()}
	b.keys(t, servers.SecretKey)
	p := places.New(places.Options{AskAfter: time.Millisecond})
	t.Cleanup(func() { p.Close() })
	b.entry = buckets.Entry{Name: "team", Bucket: servers.Bucket, Prefix: "batch/",
		Backend: "minio", EndpointURL: b.proxy.URL, CredentialsSecretRef: b.secret,
		Access: "read_write"}
	b.list = buckets.New(func(s store.Storage, below string) buckets.Objects {
		return p.Shared(s, below)
	}, []buckets.Entry{b.entry})
	b.objects = p.Shared(store.Storage{Backend: "minio", Bucket: servers.Bucket,
		EndpointURL: server.URL, Credentials: b.secret}, "")
	b.service = newService(t, append([]func(*Config, *Deps){func(_ *Config, d *Deps) {
		d.Buckets = b.list
	}}, edit...)...)
	return b
}

// keys writes the keys of the bucket.
func (b *bucketed) keys(t *testing.T, secretKey string) {
	t.Helper()
	for name, value := range map[string]string{"access-key-id": servers.AccessKey,
		"secret-access-key": secretKey} {
		if err := os.WriteFile(filepath.Join(b.secret, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// put stores an object.
func (b *bucketed) put(name, content string) {
	b.t.Helper()
	w, err := b.objects.Create(b.t.Context(), name)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err == nil {
		err = w.Commit(b.t.Context())
	}
	if err != nil {
		b.t.Fatalf("put %s: %v", name, err)
	}
}

const teamURL = "s3://" + servers.Bucket + "/"

// request is the body of a create request with a `tidefill` object.
func request(tidefill string) string {
	return `{"endpoint":"/v1/chat/completions","completion_window":"24h","tidefill":` + tidefill +
		`}`
}

func importing(name string) string { return request(fmt.Sprintf(`{"input_url":%q}`, teamURL+name)) }

// files lists the files of the tenant.
func (b *bucketed) files() (ids []string) {
	b.t.Helper()
	for _, f := range b.get("/v1/files").ok()["data"].([]any) {
		ids = append(ids, f.(map[string]any)["id"].(string))
	}
	return ids
}

// leftNothing fails the test if a file or bytes are left.
func (b *bucketed) leftNothing() {
	b.t.Helper()
	if ids := b.files(); len(ids) > 0 {
		b.t.Errorf("the files %q are left", ids)
	}
	b.nothingStored()
}

func TestBatchOfAnObject(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a")+line("b"))
	made := b.post("/v1/batches", importing("batch/in.jsonl")).ok()
	details := made["tidefill"].(map[string]any)
	if made["request_counts"].(map[string]any)["total"] != 2.0 || made["errors"] != nil ||
		details["input_url"] != teamURL+"batch/in.jsonl" {
		t.Errorf("got %v", made)
	}
	id := made["input_file_id"].(string)
	f := b.get("/v1/files/" + id).ok()
	if f["filename"] != "in.jsonl" || f["purpose"] != "batch" || f["expires_at"] == nil {
		t.Errorf("got file %v", f)
	}
	b.get("/v1/files/" + id + "/content").isWhole(line("a") + line("b"))

	// what SDKs that require input_file_id send
	again := strings.Replace(importing("batch/in.jsonl"), "{",
		`{"input_file_id":"`+teamURL+`batch/in.jsonl",`, 1)
	if b.post("/v1/batches", again).ok()["input_file_id"] == id {
		t.Error("the second batch has the file of the first")
	}
	b.post("/v1/batches", strings.Replace(again, "in.jsonl", "x.jsonl", 1)).
		refused(400, "input_file_id", "invalid_value", "leave it out or repeat")
	b.post("/v1/batches", request(`{"input_file_ids":["`+id+`"],"input_url":"`+teamURL+`batch/x.jsonl"}`)).
		refused(400, "tidefill.input_url", "invalid_value", "keep one of them")
}

// Faults of lines make a failed batch, as those of an upload, and the file can be read.
func TestFaultsOfAnObject(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a")+"{\n")
	made := b.post("/v1/batches", importing("batch/in.jsonl")).ok()
	fault := made["errors"].(map[string]any)["data"].([]any)[0].(map[string]any)
	if made["status"] != "failed" || fault["line"] != 2.0 || fault["code"] != "invalid_json_line" {
		t.Errorf("got %v", made)
	}
	b.get("/v1/files/" + made["input_file_id"].(string) + "/content").isWhole(line("a") + "{\n")
}

// All objects below a URL are inputs, in the order of their names; those of other kinds are none.
func TestBatchOfAllObjectsBelow(t *testing.T) {
	b := newBucketed(t)
	for _, name := range []string{"in/b.jsonl", "in/a.jsonl", "in/sub/c.JSONL", "in/readme.txt",
		"inner.jsonl", "in/b.jsonl.sha256"} {
		b.put("batch/"+name, line(name))
	}
	made := b.post("/v1/batches", importing("batch/in/")).ok()
	var names []string
	for _, id := range made["tidefill"].(map[string]any)["input_file_ids"].([]any) {
		names = append(names, b.get("/v1/files/" + id.(string)).ok()["filename"].(string))
	}
	if want := []string{"a.jsonl", "b.jsonl", "c.JSONL"}; !slices.Equal(names, want) {
		t.Errorf("got inputs %q, want %q", names, want)
	}
	b.post("/v1/batches", importing("batch/none/")).
		refused(400, "tidefill.input_url", "invalid_value", "no object below it")
	for i := range maxInputs + 1 {
		b.put(fmt.Sprintf("batch/many/%03d.jsonl", i), line("x"))
	}
	b.post("/v1/batches", importing("batch/many/")).
		refused(400, "tidefill.input_url", "invalid_value", "more than 100 inputs")
}

// A name is taken as it is: nothing in it is decoded, and it can't lead out of the prefix.
func TestNamesOfObjects(t *testing.T) {
	b := newBucketed(t)
	names := []string{"a b.jsonl", "ü/漢字 é.jsonl", "what?.jsonl", "100%2Fa.jsonl",
		"a+b&c=d#e.jsonl", "..jsonl", "q'\"\\.jsonl"}
	for _, name := range names {
		b.put("batch/"+name, line(name))
	}
	for _, name := range names {
		made := b.post("/v1/batches", importing("batch/"+name)).ok()
		b.get("/v1/files/" + made["input_file_id"].(string) + "/content").isWhole(line(name))
	}
	b.put("secret.jsonl", line("secret"))
	before := len(b.files())
	for url, word := range map[string]string{
		teamURL + "batch/../secret.jsonl":   `the part ".."`,
		teamURL + "batch/./in.jsonl":        `the part "."`,
		teamURL + "batch//in.jsonl":         `the part ""`,
		teamURL + "batch/\t.jsonl":          "control character",
		teamURL + strings.Repeat("x", 1025): "1025 bytes",
		"https://example.com/in.jsonl":      "write s3://BUCKET/NAME",
		"s3://" + servers.Bucket:            "write s3://BUCKET/NAME",
		"s3://EXAMPLE/in.jsonl":             "can't be the name of a bucket",
		"s3://user@host/in.jsonl":           "can't be the name of a bucket",
	} {
		b.post("/v1/batches", request(fmt.Sprintf(`{"input_url":%q}`, url))).
			refused(400, "tidefill.input_url", "invalid_value", word)
	}
	for _, name := range []string{"batch/%2E%2E/secret.jsonl", "batch/..%2Fsecret.jsonl",
		"batch/none.jsonl"} {
		b.post("/v1/batches", importing(name)).
			refused(400, "tidefill.input_url", "object_not_found", "no object "+teamURL+name)
	}
	b.post("/v1/batches", importing("batch/..jsonl/")).
		refused(400, "tidefill.input_url", "invalid_value", "no object below it")
	if after := len(b.files()); after != before {
		t.Errorf("refused requests have left %d files", after-before)
	}
}

// A user learns what the own tenant may use, and nothing of others.
func TestBucketsThatATenantMayNotUse(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a"))
	other := b.entry
	other.Name, other.Bucket, other.Tenants = "others", "others-data", []string{"other"}
	results := b.entry
	results.Name, results.Prefix, results.Access = "results", "out/", "write"
	b.list.Configure([]buckets.Entry{b.entry, other, results})
	ask := func(url string) answer {
		b.t.Helper()
		return b.post("/v1/batches", request(fmt.Sprintf(`{"input_url":%q}`, url)))
	}
	theirs, unknown := ask("s3://others-data/batch/in.jsonl"), ask("s3://unknown/batch/in.jsonl")
	theirs.refused(400, "tidefill.input_url", "bucket_not_allowed", "is not open to you",
		teamURL+"batch/")
	if strings.ReplaceAll(theirs.body, "others-data", "unknown") != unknown.body {
		t.Errorf("the bucket of others gets %s, an unknown one %s", theirs.body, unknown.body)
	}
	ask(teamURL+"secret/in.jsonl").refused(400, "tidefill.input_url", "bucket_not_allowed",
		"outside of what is open to you")
	ask(teamURL+"batch2/in.jsonl").refused(400, "tidefill.input_url", "bucket_not_allowed",
		"outside of what is open to you")
	ask(teamURL+"out/in.jsonl").refused(400, "tidefill.input_url", "bucket_not_allowed",
		"may not read there")
	b.list.Configure(nil)
	ask(teamURL+"batch/in.jsonl").refused(400, "tidefill.input_url", "bucket_not_allowed",
		"is not open to you", "ask the server's operator")
	b.leftNothing()
}

// A bucket that is away is a 503, wrong credentials are the operator's matter, and nothing is left.
func TestBucketThatCannotBeRead(t *testing.T) {
	b := newBucketed(t)
	large := strings.Repeat(line(strings.Repeat("x", 1000)), 1000)
	b.put("batch/in.jsonl", large)
	b.proxy.Choose(func(*http.Request) servers.Fault { return servers.Error })
	away := b.post("/v1/batches", importing("batch/in.jsonl"))
	away.refused(503, "tidefill.input_url", "storage_away", "it does not answer")
	if away.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	for what, fault := range map[string]servers.Fault{"cut": servers.CutResponse,
		"away": servers.Error} {
		var reads atomic.Int64
		b.proxy.Choose(func(r *http.Request) servers.Fault { // it fails midway
			if r.Method == http.MethodGet && r.Header.Get("Range") != "" && reads.Add(1) > 2 {
				return fault
			}
			return servers.None
		})
		b.eventually("the bucket to answer", func() bool {
			a := b.post("/v1/batches", importing("batch/in.jsonl"))
			return reads.Load() > 2 && a.status == 503
		})
		if ids := b.files(); len(ids) > 0 {
			t.Errorf("%s: files %q are left", what, ids)
		}
	}
	b.proxy.Choose(nil)
	b.keys(t, "wrong")
	b.post("/v1/batches", importing("batch/in.jsonl")).refused(403, "tidefill.input_url",
		"bucket_access_denied", "'team'", "Ask its operator")
	if body := b.logs.String(); !strings.Contains(body, "entry=team") {
		t.Errorf("the log has not the entry: %s", body)
	}
	b.leftNothing()
	b.keys(t, servers.SecretKey)
	b.post("/v1/batches", importing("batch/in.jsonl")).ok()
}

// An object that is replaced while it is read is an error, and never a mixture.
func TestObjectChangesWhileItIsRead(t *testing.T) {
	b := newBucketed(t)
	content := strings.Repeat(line(strings.Repeat("x", 1000)), 1000)
	b.put("batch/in.jsonl", content)
	var reads atomic.Int64
	b.proxy.Choose(func(r *http.Request) servers.Fault {
		if r.Header.Get("Range") != "" && reads.Add(1) == 2 {
			b.put("batch/in.jsonl", strings.ToUpper(content))
		}
		return servers.None
	})
	b.post("/v1/batches", importing("batch/in.jsonl")).refused(409, "tidefill.input_url",
		"object_changed", "send the request again")
	b.leftNothing()
}

func TestLimitsOfImports(t *testing.T) {
	b := newBucketed(t, func(c *Config, _ *Deps) {
		c.MaxBatchFileBytes, c.TenantQuotaBytes = 4<<10, 6<<10
	})
	b.put("batch/large.jsonl", strings.Repeat(line("a"), 40))
	b.post("/v1/batches", importing("batch/large.jsonl")).refused(413, "", "",
		"over the limit of 4096 bytes")
	half := strings.Repeat(line("a"), 30)
	b.put("batch/two/a.jsonl", half)
	b.put("batch/two/b.jsonl", half)
	b.post("/v1/batches", importing("batch/two/")).refused(413, "", "storage_quota_exceeded")
	b.leftNothing()
	b.put("batch/in.txt", line("a"))
	b.post("/v1/batches", importing("batch/in.txt")).refused(400, "tidefill.input_url",
		"invalid_value", "must end in .jsonl or .csv")
}

func TestDryRunOfAnObjectLeavesNothing(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a")+line("b"))
	got := b.post("/v1/batches?dry_run=true", importing("batch/in.jsonl")).ok()
	if got["lines"] != 2.0 || got["errors"] != nil {
		t.Errorf("got %v", got)
	}
	b.leftNothing()
	wrong := strings.ReplaceAll(importing("batch/in.jsonl"), "chat/completions", "embeddings")
	if got := b.post("/v1/batches?dry_run=true", wrong).ok(); got["errors"] == nil {
		t.Errorf("got %v, want the faults of the lines", got)
	}
	b.leftNothing()
	b.post("/v1/batches?dry_run=true", importing("batch/none.jsonl")).
		refused(400, "tidefill.input_url", "object_not_found")
}

// A repeated request gets the batch of the first and imports nothing.
func TestRepeatedRequestImportsOnce(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a"))
	first := b.post("/v1/batches", importing("batch/in.jsonl"), "Idempotency-Key", "k").ok()
	b.put("batch/in.jsonl", line("other"))
	b.proxy.Choose(func(*http.Request) servers.Fault { return servers.Error })
	again := b.post("/v1/batches", importing("batch/in.jsonl"), "Idempotency-Key", "k").ok()
	if again["id"] != first["id"] || len(b.files()) != 1 {
		t.Errorf("got batch %v and files %q", again["id"], b.files())
	}
	// one that failed may be repeated
	b.post("/v1/batches", importing("batch/in.jsonl"), "Idempotency-Key", "k2").
		refused(503, "tidefill.input_url", "storage_away")
	b.proxy.Choose(nil)
	b.post("/v1/batches", importing("batch/in.jsonl"), "Idempotency-Key", "k2").ok()
}

// A batch that can't be stored leaves nothing of its inputs.
func TestRefusedCreationLeavesNothingOfItsImport(t *testing.T) {
	refused := errors.New("no")
	b := newBucketed(t, func(_ *Config, d *Deps) {
		d.Metadata = refusing{d.Metadata, refused}
	})
	b.put("batch/in.jsonl", line("a"))
	b.post("/v1/batches", importing("batch/in.jsonl")).refused(500, "", "")
	b.leftNothing()
}

// refusing creates no batches.
type refusing struct {
	Metadata
	err error
}

func (r refusing) CreateBatch(context.Context, store.Batch, ...store.File) error { return r.err }

// The import ends when its client hangs up.
func TestClientHangsUpDuringAnImport(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", strings.Repeat(line(strings.Repeat("x", 1000)), 1000))
	reading := make(chan struct{})
	var reads atomic.Int64
	b.proxy.Choose(func(r *http.Request) servers.Fault {
		if r.Header.Get("Range") == "" || reads.Add(1) < 2 {
			return servers.None
		}
		if reads.Load() == 2 {
			close(reading)
		}
		return servers.Stall
	})
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", b.url+"/v1/batches",
		strings.NewReader(importing("batch/in.jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			response.Body.Close()
		}
		done <- err
	}()
	<-reading
	hangUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	b.leftNothing()
}

// An import takes the memory of an upload, whatever the size of the object.
func TestImportsTakeLittleMemory(t *testing.T) {
	b := newBucketed(t, func(c *Config, _ *Deps) { c.MaxBatchLines = 1 << 20 })
	w, err := b.objects.Create(t.Context(), "batch/in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	filler := strings.Repeat(rand.Text(), 2000)
	for n, i := 0, 0; n < size; i++ {
		added, err := io.WriteString(w, strings.Replace(line(fmt.Sprint(i)), `"hi"`,
			`"`+filler+`"`, 1))
		if err != nil {
			t.Fatal(err)
		}
		n += added
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var made answer
	peak := peakHeap(func() { made = b.post("/v1/batches", importing("batch/in.jsonl")) })
	made.ok()
	if peak > size/2 {
		t.Errorf("the import of %d MiB took %d MiB", size>>20, peak>>20)
	}
}

// A retry takes the lines of its batch, and no other input.
func TestRetryOfAnImportedBatch(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a"))
	id := b.post("/v1/batches", importing("batch/in.jsonl")).ok()["id"].(string)
	b.change(id, func(b *store.Batch) { b.State, b.CompletedAt = store.Completed, b.CreatedAt })
	b.post("/v1/batches/"+id+"/retry", "").refused(400, "", "nothing_failed")
	b.post("/v1/batches/"+id+"/retry", `{"tidefill":{"input_url":"`+teamURL+`batch/in.jsonl"}}`).
		refused(400, "tidefill.input_url", "invalid_value", "a retry sends lines")
}

func delivering(name string) string {
	return fmt.Sprintf(`{"input_url":%q,"output_url":%q}`, teamURL+"batch/in.jsonl", teamURL+name)
}

// Whether results can be delivered is known at creation, which leaves no object.
func TestOutputIsCheckedAtCreation(t *testing.T) {
	b := newBucketed(t)
	b.put("batch/in.jsonl", line("a"))
	ask := func(name string) answer {
		b.t.Helper()
		return b.post("/v1/batches", request(delivering(name)))
	}
	const param = "tidefill.output_url"
	ask("batch/out").refused(400, param, "invalid_value", "end it in a slash")
	ask("out/").refused(400, param, "bucket_not_allowed", "write below "+teamURL+"batch/")
	ask("batch/../").refused(400, param, "invalid_value", `the part ".."`)
	readOnly := b.entry
	readOnly.Access = "read"
	b.list.Configure([]buckets.Entry{readOnly})
	ask("batch/out/").refused(400, param, "bucket_not_allowed", "may not write there")
	b.list.Configure([]buckets.Entry{b.entry})
	ask("batch/"+strings.Repeat("x/", 500)).refused(400, param, "invalid_value",
		"the limit is 1024")
	b.proxy.Choose(func(r *http.Request) servers.Fault {
		if r.Method == http.MethodPost {
			return servers.Error
		}
		return servers.None
	})
	for _, query := range []string{"", "?dry_run=true"} {
		b.post("/v1/batches"+query, request(delivering("batch/out/"))).
			refused(503, param, "storage_away", "it does not answer")
	}
	b.proxy.Choose(nil)
	b.leftNothing()
	b.keys(t, "wrong")
	ask("batch/out/").refused(403, param, "bucket_access_denied", "'team'")
	b.keys(t, servers.SecretKey)

	made := ask("batch/out/").ok()
	want := map[string]any{"url": teamURL + "batch/out/", "delivered": false, "error": nil}
	output := func(batch map[string]any) map[string]any {
		return batch["tidefill"].(map[string]any)["output"].(map[string]any)
	}
	if got := output(made); !maps.Equal(got, want) {
		t.Errorf("got output %v, want %v", got, want)
	}
	id := made["id"].(string)
	b.change(id, func(b *store.Batch) {
		b.State, b.CompletedAt = store.Completed, b.CreatedAt
		b.Delivery = &store.Delivery{Error: "it does not answer"}
	})
	want["error"] = "it does not answer"
	if got := output(b.get("/v1/batches/" + id).ok()); !maps.Equal(got, want) {
		t.Errorf("got output %v, want %v", got, want)
	}
	page, err := b.objects.List(t.Context(), "batch/out", "", 10)
	if err != nil || len(page) > 0 {
		t.Errorf("the check has left %v, %v", page, err)
	}
	b.list.Configure([]buckets.Entry{readOnly}) // the options of a retry are checked again
	b.post("/v1/batches/"+id+"/retry", "").refused(400, param, "bucket_not_allowed")
}

// Imports count as uploads: beyond those that are received at once, one waits, and then is refused.
func TestImportsPassTheGateOfUploads(t *testing.T) {
	b := newBucketed(t, func(c *Config, _ *Deps) { c.MaxRequests, c.QueueWait = 32, 1 })
	b.put("batch/in.jsonl", line("a"))
	held, release := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free() // also when the test fails
	var holds atomic.Bool
	b.proxy.Choose(func(r *http.Request) servers.Fault {
		if r.Header.Get("Range") != "" && holds.CompareAndSwap(false, true) {
			close(held)
			<-release
		}
		return servers.None
	})
	first := make(chan answer, 1)
	go func() { first <- b.post("/v1/batches", importing("batch/in.jsonl")) }()
	select {
	case <-held:
	case a := <-first:
		t.Fatalf("the first import was answered %d before it was read: %s", a.status, a.body)
	}
	second := make(chan answer, 1)
	go func() { second <- b.post("/v1/batches", importing("batch/in.jsonl")) }()
	select {
	case a := <-second:
		a.refused(503, "", "busy", "uploads")
	case <-time.After(5 * time.Second):
		t.Fatal("the second import was not refused within 5 s")
	}
	free()
	a := <-first
	a.ok()
}
