package dispatch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/store/places"
)

// delivering is a world whose users may name a bucket of a real storage, behind a proxy.
type delivering struct {
	*world
	proxy   *servers.Proxy
	secret  string // directory of the keys
	entry   buckets.Entry
	list    *buckets.Buckets
	objects *places.Shared
	log     *warnings
	// metrics are those of the dispatchers that were started first
	metrics *prometheus.Registry
}

func newDelivering(t *testing.T) *delivering {
	t.Helper()
	server := servers.Start(t)
	d := &delivering{world: newWorld(t), proxy: servers.StartProxy(t, server), secret: t.TempDir(),
		log: &warnings{}, metrics: prometheus.NewRegistry()}
	d.keys(servers.SecretKey)
	p, _ := withPlaces(t, nil)
	d.entry = buckets.Entry{Name: "team", Bucket: servers.Bucket, Prefix: "batch/",
		Backend: "minio", EndpointURL: d.proxy.URL, CredentialsSecretRef: d.secret,
		Tenants: []string{"default"}, Access: "write"}
	d.list = buckets.New(func(s store.Storage, below string) buckets.Objects {
		return p.Shared(s, below)
	}, []buckets.Entry{d.entry})
	d.objects = p.Shared(store.Storage{Backend: "minio", Bucket: servers.Bucket,
		EndpointURL: server.URL, Credentials: d.secret}, "")
	return d
}

// keys writes the keys of the bucket.
func (d *delivering) keys(secretKey string) {
	d.t.Helper()
	for name, value := range map[string]string{"access-key-id": servers.AccessKey,
		"secret-access-key": secretKey} {
		if err := os.WriteFile(filepath.Join(d.secret, name), []byte(value), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
}

// start starts a dispatcher. A bucket may refuse results for a time; 0: that of production.
func (d *delivering) start(
	node string, refusedFor time.Duration, upstreams ...string,
) (stop func()) {
	d.t.Helper()
	_, stop = d.dispatcher(node, func(c *dispatch.Config, deps *dispatch.Deps) {
		c.RefusedFor = refusedFor
		deps.Buckets = d.list
		deps.Logger = slog.New(d.log)
		if node == "one" {
			deps.Registerer = d.metrics
		}
	}, upstreams...)
	return stop
}

// deliveries returns how often a result of deliveries was counted.
func (d *delivering) deliveries(result string) (sum float64) {
	d.t.Helper()
	families, err := d.metrics.Gather()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "tidefill_deliveries_total" && m.Label[0].GetValue() == result {
				sum += m.Counter.GetValue()
			}
		}
	}
	return sum
}

const outputURL = "s3://" + servers.Bucket + "/batch/out/"

// deliver submits a batch whose results are delivered.
func (d *delivering) deliver(lines []string, change func(*store.Batch)) string {
	d.t.Helper()
	return d.submit(lines, func(b *store.Batch) {
		b.Options.OutputURL = outputURL
		if change != nil {
			change(b)
		}
	})
}

// delivered returns the objects of a batch by their names below its own.
func (d *delivering) delivered(id string) map[string]string {
	d.t.Helper()
	below := "batch/out/" + id + "/"
	page, err := d.objects.List(d.t.Context(), below, "", 100)
	if err != nil {
		d.t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range page {
		found[strings.TrimPrefix(o.Key, below)] = readAll(d.t, d.objects, o.Key)
	}
	return found
}

// isDelivered fails the test unless a batch has ended with its files in the bucket, and nothing
// else.
func (d *delivering) isDelivered(b store.Batch, output, errs string) {
	d.t.Helper()
	if b.Delivery == nil || !b.Delivery.Delivered || b.Delivery.Error != "" {
		d.t.Errorf("batch %s has the delivery %+v", b.ID, b.Delivery)
	}
	want := map[string]string{}
	if b.Outputs[0].HasOutput {
		want[output] = string(d.content(b.Outputs[0].OutputID))
	}
	if b.Outputs[0].HasErrors {
		want[errs] = string(d.content(b.Outputs[0].ErrorID))
	}
	got := d.delivered(b.ID)
	if fmt.Sprint(got) != fmt.Sprint(want) || len(want) == 0 {
		d.t.Errorf("batch %s: delivered %v, want %v", b.ID, got, want)
	}
}

// Every end of a batch that has begun delivers its results first.
func TestResultsAreDelivered(t *testing.T) {
	t.Parallel()
	d := newDelivering(t)
	block := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-block
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}, "slow")
	d.start("one", 0, serve(t, nil, "m").URL, u.URL)
	b := d.awaitEnd(d.deliver(chatLines(5, "m"), nil))
	d.isDelivered(b, "output.jsonl", "errors.jsonl")

	each := d.awaitEnd(d.deliver(chatLines(5, "m"), func(b *store.Batch) {
		b.Options.OutputPerInput, b.Outputs[0].Input = true, 0
	}))
	d.isDelivered(each, "output-0001.jsonl", "errors-0001.jsonl")

	cancelled := d.deliver(chatLines(2, "slow"), nil)
	expired := d.deliver(chatLines(2, "slow"), nil)
	failing := d.deliver(chatLines(2, "slow"), func(b *store.Batch) { b.Options.StopAtFailed = 1 })
	for _, id := range []string{cancelled, expired, failing} {
		d.await(id, "it runs", func(b store.Batch) bool { return b.State == store.InProgress })
	}
	until(t, "lines are in flight", func() bool { return d.progress(failing).InFlight == 2 })
	d.modify(cancelled, cancelling(false))
	d.modify(expired, func(b *store.Batch) { b.Deadline = time.Now() })
	close(block)
	for id, state := range map[string]store.State{cancelled: store.Cancelled,
		expired: store.Expired, failing: store.Failed} {
		b := d.awaitEnd(id)
		if b.State != state {
			t.Errorf("batch %s ended %s, want %s", id, b.State, state)
		}
		d.isDelivered(b, "output.jsonl", "errors.jsonl")
	}
	if plain := d.awaitEnd(d.submit(chatLines(1, "m"), nil)); plain.Delivery != nil {
		t.Errorf("a batch without output_url has the delivery %+v", plain.Delivery)
	}
}

// While the bucket is away the batch waits and says so, others end, and it is delivered once the
// bucket is back, also by another process that finds half of it.
func TestBucketOfResultsComesBack(t *testing.T) {
	t.Parallel()
	d := newDelivering(t)
	url := serve(t, nil, "m").URL
	stop := d.start("one", 0, url)
	d.proxy.Choose(func(*http.Request) servers.Fault { return servers.Error })
	away := d.deliver(chatLines(5, "m"), nil)
	waiting := plan.StorageAway.Because("The bucket of the batch's output_url does not take its " +
		"results: it does not answer.")
	until(t, "the batch waits for the bucket", func() bool {
		return d.progress(away).Waiting == waiting
	})
	if other := d.awaitEnd(d.submit(chatLines(3, "m"), nil)); other.Counts.Completed != 3 {
		t.Errorf("another batch ended with %+v", other.Counts)
	}
	if b := d.batch(away); b.State != store.Finalizing || b.Delivery != nil {
		t.Errorf("the batch is %s, %+v", b.State, b.Delivery)
	}
	if said := d.log.with("output_url does not take its results"); len(said) != 1 {
		t.Errorf("logged %q, want one warning", said)
	}
	var puts atomic.Int64
	d.proxy.Choose(func(r *http.Request) servers.Fault { // the answer to a written object is lost
		if r.Method == http.MethodPut && !r.URL.Query().Has("partNumber") {
			puts.Add(1)
			return servers.Lost
		}
		return servers.None
	})
	until(t, "an object is written", func() bool { return puts.Load() > 0 })
	stop()
	d.proxy.Choose(nil)
	d.start("two", 0, url)
	d.isDelivered(d.awaitEnd(away), "output.jsonl", "errors.jsonl")
}

// A batch does not wait for ever: a day for a bucket that is away, and less for one that refuses.
func TestBatchEndsWithoutItsBucket(t *testing.T) {
	t.Parallel()
	d := newDelivering(t)
	d.start("one", 0, serve(t, nil, "m").URL)
	ends := func(id, cause string) {
		t.Helper()
		b := d.awaitEnd(id)
		if b.State != store.Completed || !b.Outputs[0].HasOutput || b.Delivery == nil ||
			b.Delivery.Delivered || !strings.Contains(b.Delivery.Error, cause) {
			t.Errorf("the batch ended %s with %+v, %+v", b.State, b.Outputs, b.Delivery)
		}
		if got := d.content(b.Outputs[0].OutputID); len(got) == 0 {
			t.Error("its results are no file")
		}
	}
	d.proxy.Choose(func(*http.Request) servers.Fault { return servers.Error })
	away := d.deliver(chatLines(5, "m"), nil)
	until(t, "the batch waits", func() bool {
		return plan.ReasonOf(d.progress(away).Waiting) == plan.StorageAway
	})
	d.modify(away, func(b *store.Batch) { b.FinalizingAt = time.Now().Add(-23 * time.Hour) })
	tried := d.proxy.Failed()
	until(t, "it is tried again", func() bool { return d.proxy.Failed() > tried+1 })
	if b := d.batch(away); b.State != store.Finalizing {
		t.Errorf("the batch is %s after 23 hours", b.State)
	}
	d.modify(away, func(b *store.Batch) { b.FinalizingAt = time.Now().Add(-24 * time.Hour) })
	d.touch(away)
	ends(away, "it does not answer")
	if said := d.log.with("are not delivered"); len(said) != 1 || !strings.Contains(said[0],
		outputURL) {
		t.Errorf("logged %q", said)
	}
	if failed, given := d.deliveries("failed"), d.deliveries("given_up"); failed < 2 || given != 1 {
		t.Errorf("%v deliveries failed and %v were given up, want 2 and 1", failed, given)
	}
	d.proxy.Choose(nil)

	d.list.Configure(nil)
	removed := d.deliver(chatLines(5, "m"), nil)
	until(t, "the batch waits", func() bool {
		return strings.Contains(d.progress(removed).Waiting, "is not open to you")
	})
	d.list.Configure([]buckets.Entry{d.entry}) // in time
	d.touch(removed)
	d.isDelivered(d.awaitEnd(removed), "output.jsonl", "errors.jsonl")
	if n := d.deliveries("delivered"); n != 1 {
		t.Errorf("%v deliveries are counted, want 1", n)
	}
}

func TestBucketThatRefusesResults(t *testing.T) {
	t.Parallel()
	d := newDelivering(t)
	d.start("one", time.Millisecond, serve(t, nil, "m").URL)
	ends := func(cause string) {
		t.Helper()
		b := d.awaitEnd(d.deliver(chatLines(5, "m"), nil))
		if b.State != store.Completed || b.Delivery == nil || b.Delivery.Delivered ||
			!strings.Contains(b.Delivery.Error, cause) {
			t.Errorf("the batch ended %s with %+v; want %q", b.State, b.Delivery, cause)
		}
	}
	d.keys("wrong")
	ends("it refuses the requests of the daemon")
	if err := os.Remove(filepath.Join(d.secret, "access-key-id")); err != nil {
		t.Fatal(err)
	}
	ends("has no key access-key-id")
	other := d.entry
	other.Tenants = []string{"other"}
	d.list.Configure([]buckets.Entry{other})
	ends("is not open to you")
	d.keys(servers.SecretKey)
	gone := d.entry
	gone.Bucket = "tidefill-gone"
	d.list.Configure([]buckets.Entry{gone})
	id := d.submit(chatLines(5, "m"), func(b *store.Batch) {
		b.Options.OutputURL = "s3://tidefill-gone/batch/"
	})
	if b := d.awaitEnd(id); b.Delivery == nil || b.Delivery.Delivered {
		t.Errorf("the batch of a bucket that is gone ended with %+v", b.Delivery)
	}
}
