package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// stallAfter is how long the bucket may transfer nothing in tests of outages.
const stallAfter = 500 * time.Millisecond

// needsBucket lists the requests of UserRequests that need the bucket.
var needsBucket = []string{"upload", "add part", "content", "results"}

// While the bucket is away, requests for bytes are answered 503 soon and others as ever, batches
// pause, and users see why. Then batches go on by themselves, and every line has one result.
func TestUsersSeeThatTheBucketIsAway(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		hit  func(*s3.Server, *s3.Proxy) (heal func() error)
	}{
		{"stopped", func(s *s3.Server, _ *s3.Proxy) func() error {
			s.Kill()
			return s.Resume
		}},
		{"answers SlowDown", answering(s3.SlowDown)},
		{"stalls", answering(s3.Stall)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "stopped" {
				long(t, "another fault of a bucket")
			}
			server := s3.Start(t)
			proxy := s3.StartProxy(t, server)
			set := bucket(t, server)
			for i := range set {
				set[i] = strings.Replace(set[i], server.URL, proxy.URL, 1)
			}
			testBucketOutage(t, func() func() error { return test.hit(server, proxy) },
				append(clusterStore(t, postgres.Start(t)), set...)...)
		})
	}
}

// answering returns how a proxy begins to have a fault.
func answering(fault s3.Fault) func(*s3.Server, *s3.Proxy) (heal func() error) {
	return func(_ *s3.Server, p *s3.Proxy) func() error {
		p.Choose(func(*http.Request) s3.Fault { return fault })
		return func() error {
			p.Choose(nil)
			return nil
		}
	}
}

func testBucketOutage(t *testing.T, hit func() (heal func() error), set ...string) {
	tr := beginOnBucket(t, "users while the bucket is away")
	r := startReplicas(t, tr, append(set,
		"store.cluster.objects.tuning.stall_after="+stallAfter.String())...)
	o, inputs := r.objects(t)
	c := r.api[0].Client()
	requests := UserRequests(o)
	others := slices.DeleteFunc(slices.Clone(requests), func(r UserRequest) bool {
		return slices.Contains(needsBucket, r.Name)
	})
	requests = slices.DeleteFunc(requests, func(r UserRequest) bool {
		return !slices.Contains(needsBucket, r.Name)
	})

	uploading := c.BeginUpload(NewLines("interrupted", "m", 10).Content)
	heal := hit()
	defer func() { heal() }()
	interrupted := uploading.End()
	// Four tries, and at most 10 s to remove what may have been stored.
	slowest := c.CheckRefused(t, 4*stallAfter+15*time.Second, requests)
	t.Logf("the slowest request was refused after %v", slowest.Round(10*time.Millisecond))
	if answer := <-interrupted; answer.Status != http.StatusServiceUnavailable {
		t.Errorf("an upload in progress: got %d %s, want 503", answer.Status, answer.Body)
	}
	for _, other := range others {
		if strings.HasSuffix(other.Path, "/events") || strings.HasSuffix(other.Path, "/retry") {
			continue
		}
		answer, err := c.Do(other.Method, other.Path, other.ContentType,
			bytes.NewReader(other.Body))
		if err != nil || answer.Status >= 500 {
			t.Errorf("%s, which needs no bytes: %v, %d %s", other.Name, err, answer.Status,
				answer.Body)
		}
	}

	c.Await(t, o.Running, 20*time.Second, func(b Batch) bool {
		return b.WaitsFor("store_unreachable") && r.stub.InFlight() == 0
	})
	await(t, 10*time.Second, "that a daemon shows the reason of its pool", func() bool {
		return r.leaderSays(t, "store_unreachable")
	})
	sent := r.stub.Requests()
	for name, d := range r.daemons {
		await(t, 20*time.Second, name+" to say that the bucket is away", func() bool {
			ready := d.Readiness(t)
			return ready.Ready && len(ready.Degraded) == 1 &&
				strings.HasPrefix(ready.Degraded[0], "the bucket: ")
		})
	}
	if again := r.stub.Requests(); again > sent {
		t.Errorf("%d lines were sent while the bucket was away", again-sent)
	}

	if err := heal(); err != nil {
		t.Fatal(err)
	}
	heal = func() error { return nil }
	c.AwaitAnswers(t, 30*time.Second, requests)
	await(t, 30*time.Second, "that lines are sent again", func() bool {
		return r.stub.Requests() > sent
	})
	for name, d := range r.daemons {
		await(t, 10*time.Second, name+" to say that the bucket is back", func() bool {
			return len(d.Readiness(t).Degraded) == 0
		})
	}
	tr.Tried++
	c.CheckFiles(t)
	r.checkResults(t, tr, inputs)
	if tr.Resent = r.resent(inputs[o.Running]); tr.Resent > 0 {
		t.Errorf("%d lines were sent again, although no daemon ended", tr.Resent)
	}
}
