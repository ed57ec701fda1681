package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// replicas are daemons that share a store and divide the work.
type replicas struct {
	*nodes
	api, dispatch []*Daemon
}

// startReplicas starts two daemons that serve users and two that dispatch.
func startReplicas(t *testing.T, tr *Trial, set ...string) *replicas {
	t.Helper()
	r := &replicas{nodes: &nodes{stub: NewStub(t, "m"), daemons: map[string]*Daemon{}}}
	r.stub.MinDelay, r.stub.MaxDelay = 5*time.Millisecond, 25*time.Millisecond
	bucket := slices.ContainsFunc(set, func(s string) bool {
		return strings.HasPrefix(s, "store.cluster.objects.bucket=")
	})
	data, lease := t.TempDir(), nodeLease
	if bucket {
		lease = bucketLease
	}
	for _, name := range []string{"dispatch-1", "dispatch-2", "api-1", "api-2"} {
		if bucket {
			data = t.TempDir() // nothing on a disk is shared
		}
		role, _, _ := strings.Cut(name, "-")
		o := Options{Data: data, Admin: freeAddress(t), Roles: []string{role},
			Args: []string{"--node", name}}
		upstreams := fmt.Sprintf("upstreams=[{url: %q, headers: {%s: %s}}]", r.stub.URL, NodeHeader,
			name)
		o.Set = append(with("dispatch.tuning.lease_ttl="+lease.String(), upstreams,
			fmt.Sprintf("flowcontrol.fixed.per_runner=%d", nodePerRunner)), set...)
		d := tr.Watch(NewDaemon(t, o))
		r.daemons[name] = d
		if role == "api" {
			r.api, r.names = append(r.api, d), append(r.names, name)
		} else {
			r.dispatch = append(r.dispatch, d)
		}
	}
	return r
}

// liveStore returns the settings of a Redis beside those of a store.
func liveStore(server *redis.Server) []string {
	return []string{"store.cluster.live.url=redis://" + server.Addr}
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready    bool
	Waiting  []string
	Degraded []string
	Roles    map[string]struct {
		Ready   bool
		Waiting []string
		State   string
	}
}

// Readiness returns the answer of /readyz.
func (d *Daemon) Readiness(t testing.TB) (r readiness) {
	t.Helper()
	d.admin(t, "/readyz", &r)
	return r
}

// admin gets something of the daemon's address for administration.
func (d *Daemon) admin(t testing.TB, path string, into any) {
	t.Helper()
	c := &Client{URL: "http://" + d.Admin, HTTP: &http.Client{Timeout: 10 * time.Second}}
	answer, err := c.Do(http.MethodGet, path, "", nil)
	if err == nil {
		err = json.Unmarshal(answer.Body, into)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, answer.Body)
	}
}

// UploadInParts uploads content in parts that go to each client in turn.
func UploadInParts(t testing.TB, content []byte, size int, clients ...*Client) File {
	t.Helper()
	var upload struct {
		ID   string
		File File
	}
	begin := fmt.Sprintf(`{"filename":"in.jsonl","purpose":"batch","mime_type":"text/plain",`+
		`"bytes":%d}`, len(content))
	if err := clients[0].json("POST", "/v1/uploads", "application/json", strings.NewReader(begin),
		&upload); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for part := range slices.Chunk(content, size) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		file, _ := form.CreateFormFile("data", "part")
		file.Write(part)
		form.Close()
		var added struct{ ID string }
		if err := clients[len(parts)%len(clients)].json("POST", "/v1/uploads/"+upload.ID+"/parts",
			form.FormDataContentType(), &body, &added); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, added.ID)
	}
	list, _ := json.Marshal(map[string][]string{"part_ids": parts})
	if err := clients[len(clients)-1].json("POST", "/v1/uploads/"+upload.ID+"/complete",
		"application/json", bytes.NewReader(list), &upload); err != nil {
		t.Fatal(err)
	}
	return upload.File
}

// Replicas that serve users are separate from those that dispatch. Users reach any of them with
// each request, and no daemon shares a disk with another one.
func TestRolesAreSeparateProcesses(t *testing.T) {
	t.Parallel()
	tr := beginOnBucket(t, "2 replicas for users, 2 that dispatch, PostgreSQL, a bucket and Redis")
	set := append(clusterStore(t, postgres.Start(t)), bucket(t, s3.Start(t))...)
	r := startReplicas(t, tr, append(set, liveStore(redis.Start(t))...)...)
	first, second := r.api[0].Client(), r.api[1].Client()

	lines := NewLines("roles", "m", 1000)
	file := UploadInParts(t, lines.Content, len(lines.Content)/5, first, second)
	key := []string{"Idempotency-Key", "one"}
	b, err := second.CreateBatch(file.ID, "", key...)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := first.CreateBatch(file.ID, "", key...); err != nil || again.ID != b.ID {
		t.Errorf("the same request at the other replica: %v, %+v, want batch %s", err, again, b.ID)
	}
	events := first.Follow(t, b.ID)
	answers := followResults(t, b.ID, first, second)
	if answers != len(lines.Bodies) {
		t.Errorf("results?after= returned %d lines, want %d", answers, len(lines.Bodies))
	}
	events.Await(t, "done", func(e Event) bool { return e.Name == "done" })
	progress := slices.DeleteFunc(slices.Clone(events.Events()), func(e Event) bool {
		return e.Name != "progress"
	})
	if len(progress) < 3 {
		t.Errorf("a replica that does not lead sent %d events of progress", len(progress))
	}
	b = first.AwaitEnd(t, b.ID, time.Minute)
	sum := second.CheckOnce(t, b, lines)
	tr.Lost, tr.Doubled = sum.Lost, sum.Doubled
	second.CheckComplete(t, b, lines)
	r.api[0].Verify(t, b.ID)

	for _, a := range r.stub.AttemptList(Lines{}) {
		if !strings.HasPrefix(a.Node, "dispatch") {
			t.Fatalf("a line was sent by %s", a.Node)
		}
	}
	r.checkRoles(t)
}

// followResults reads the results of a batch to its end, from each client in turn, and returns how
// many there were.
func followResults(t *testing.T, id string, clients ...*Client) (lines int) {
	t.Helper()
	after := ""
	for i := 0; ; i++ {
		answer, err := clients[i%len(clients)].Do(http.MethodGet,
			"/v1/batches/"+id+"/results?after="+after, "", nil)
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("results after %q: %v %d %s", after, err, answer.Status, answer.Body)
		}
		lines += bytes.Count(answer.Body, []byte("\n"))
		after = answer.Header.Get("Tidefill-Next")
		more := answer.Header.Get("Tidefill-More") == "true"
		if answer.Header.Get("Tidefill-Batch-Status") == "completed" && !more {
			return lines
		}
		if !more {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// checkRoles checks what the daemons say of themselves and of each other.
func (r *replicas) checkRoles(t *testing.T) {
	t.Helper()
	leading := 0
	for _, d := range r.dispatch {
		ready := d.Readiness(t)
		state := ready.Roles["dispatch"].State
		if state == "leading" {
			leading++
		} else if state != "standing by" {
			t.Errorf("a daemon that dispatches is %q", state)
		}
		if !ready.Ready || len(ready.Roles) != 1 {
			t.Errorf("a daemon that dispatches: %+v", ready)
		}
		if conn, err := net.Dial("tcp", d.Listen); err == nil {
			conn.Close()
			t.Error("a daemon that only dispatches listens for users")
		}
	}
	if leading != 1 {
		t.Errorf("%d daemons lead, want 1", leading)
	}
	for _, d := range r.api {
		if ready := d.Readiness(t); !ready.Ready || len(ready.Roles) != 1 ||
			ready.Roles["api"].State != "serving" {
			t.Errorf("a replica for users: %+v", ready)
		}
		if !strings.Contains(metricsOf(t, d.Admin), "tidefill_redis_up 1") {
			t.Error("a replica does not use Redis")
		}
	}
	for name, d := range r.daemons {
		await(t, 5*time.Second, "that "+name+" shows the pool of the leader", func() bool {
			var pools struct {
				Data []struct {
					Name, Node string
					Age        *float64 `json:"age_s"`
				}
			}
			d.admin(t, "/admin/pools", &pools)
			return len(pools.Data) == 1 && strings.HasPrefix(pools.Data[0].Node, "dispatch") &&
				pools.Data[0].Age != nil && *pools.Data[0].Age < 3
		})
	}
	var models struct{ Data []struct{ ID string } }
	if err := r.api[1].Client().json("GET", "/v1/models", "", nil, &models); err != nil ||
		len(models.Data) != 1 || models.Data[0].ID != "m" {
		t.Errorf("models of a replica that asks no runner: %+v %v", models, err)
	}
}
