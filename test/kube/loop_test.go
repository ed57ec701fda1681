package kube_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
)

// loop is the closed loop: the daemon, KEDA and the HPA, the controllers of Deployments and
// ReplicaSets, and runners that start, drain and end with their pods.
type loop struct {
	*world
	day     *day
	kubelet *kubelet
	keda    *keda
	client  *client.Client
	cfg     config.Config // of the daemon
	daemon  *app.App
	stop    func() // ends the daemon
	began   time.Time
}

// startLoop starts all parts, with a Deployment of no replica.
func startLoop(t *testing.T, d *day) *loop {
	t.Helper()
	l := &loop{world: newWorld(t), day: d}
	const target = "vllm"
	l.modelServers(target, 0, d.real(d.Scenario.Pool.Drain.Batch))
	l.kubelet = l.startKubelet(d)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg, dir := d.compressed(), t.TempDir()
	on := apptest.Config(dir)
	cfg.Listen, cfg.AdminListen, cfg.Data, cfg.Node = on.Listen, on.AdminListen, on.Data, on.Node
	cfg.Shutdown = on.Shutdown
	pool := d.Scenario.Pool
	cfg.Pools = []config.PoolConfig{{
		Pool: registry.Pool{Name: "batch", Models: []string{model},
			Role: registry.RoleBatch, Min: pool.Min, Max: pool.Max},
		Kubernetes: kube.PoolConfig{Selector: "app=" + target,
			Port: strconv.Itoa(l.kubelet.port), Target: kube.Target{Name: target}},
	}}
	cfg.Autoscale.Record = filepath.Join(dir, "decisions.jsonl")
	cfg.Scaler.Listen = listener.Addr().String()
	cfg.Kubernetes.Kubeconfig = filepath.Join(dir, "kubeconfig")
	l.grant("tidefill-"+l.namespace, kube.Roles("tidefill", l.namespace, cfg.Kubernetes,
		[]kube.Watched{{Name: "batch", PoolConfig: cfg.Pools[0].Kubernetes}}))
	if err := plane.kubeconfig(cfg.Kubernetes.Kubeconfig, plane.address(),
		"tidefill-"+l.namespace, l.namespace); err != nil {
		t.Fatal(err)
	}
	l.cfg = cfg
	l.daemon, l.stop = apptest.Start(t, cfg, app.Options{ScalerListener: listener})
	if l.client, err = client.New(l.daemon.URL(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	l.keda = l.startKEDA(d, l.daemon.ScalerAddr(), target, "batch")
	return l
}

// play submits the jobs at their times, and waits until all have ended and no pod is left. It
// returns the batches in the order of the jobs. meanwhile runs when all are submitted.
func (l *loop) play(meanwhile func()) (batches []client.Batch) {
	l.t.Helper()
	ctx := l.t.Context()
	files := make([]string, len(l.day.jobs))
	for i, j := range l.day.jobs {
		file, err := l.client.Upload(ctx, j.Name+".jsonl", bytes.NewReader(j.file),
			int64(len(j.file)))
		if err != nil {
			l.t.Fatal(err)
		}
		files[i] = file.ID
	}
	l.began = time.Now()
	for i, j := range l.day.jobs {
		time.Sleep(time.Until(l.began.Add(l.day.real(j.At))))
		b, err := l.client.CreateBatch(ctx, client.BatchRequest{InputFileID: files[i],
			Endpoint: "/v1/completions", CompletionWindow: "24h",
			Tidefill: &client.RequestExtensions{Deadline: l.day.real(j.Window).String()}})
		if err != nil {
			l.t.Fatal(err)
		}
		batches = append(batches, b)
	}
	meanwhile()
	for i := range batches {
		l.awaitEnd(&batches[i])
	}
	until(l.t, func() string {
		if existing, _ := l.kubelet.counts(); existing > 0 {
			return "pods are left though no work is"
		}
		return ""
	})
	return batches
}

// awaitEnd waits until a batch has ended.
func (l *loop) awaitEnd(b *client.Batch) {
	l.t.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for ; !b.Ended(); <-again.C {
		now, err := l.client.Batch(l.t.Context(), b.ID)
		if err != nil {
			l.t.Fatal(err)
		}
		*b = now
	}
}

// checkAnswers checks that each line of a job has its answer, once, in the place of the line.
func (l *loop) checkAnswers(j *dayJob, b client.Batch) {
	l.t.Helper()
	if b.Status != "completed" || b.Counts.Completed != j.Lines || b.Counts.Failed > 0 {
		l.t.Fatalf("job %s is %s with %+v of %d lines (%s)", j.Name, b.Status, b.Counts, j.Lines,
			b.Tidefill.Reason)
	}
	content, err := l.client.Content(l.t.Context(), b.OutputFileID)
	if err != nil {
		l.t.Fatal(err)
	}
	defer content.Close()
	rows := bufio.NewScanner(content)
	rows.Buffer(nil, 1<<20)
	n := 0
	for ; rows.Scan(); n++ {
		var row struct {
			CustomID string `json:"custom_id"`
			Response struct {
				StatusCode int `json:"status_code"`
				Body       struct {
					Usage struct {
						CompletionTokens int `json:"completion_tokens"`
					} `json:"usage"`
				} `json:"body"`
			} `json:"response"`
		}
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			l.t.Fatalf("job %s, row %d of the output: %v", j.Name, n+1, err)
		}
		if n >= j.Lines {
			break
		}
		want := j.lines[n]
		if row.CustomID != want.id || row.Response.StatusCode != 200 ||
			row.Response.Body.Usage.CompletionTokens != want.tokens {
			l.t.Fatalf("job %s, row %d of the output: got %+v, want %s with %d tokens", j.Name,
				n+1, row, want.id, want.tokens)
		}
	}
	if rows.Err() != nil || n != j.Lines {
		l.t.Fatalf("job %s: %d rows of output, %v; want %d", j.Name, n, rows.Err(), j.Lines)
	}
}

// checkRequests checks by what the runners counted that each line was answered once, and how many
// requests were lost with a runner. It returns the latter.
func (l *loop) checkRequests() (repeated int) {
	l.t.Helper()
	received, completed := map[string]int{}, map[string]int{}
	for _, p := range l.kubelet.lives() {
		for _, b := range p.ledger.Bodies {
			received[b.SHA256] += b.Received
			completed[b.SHA256] += b.Completed
		}
	}
	for _, j := range l.day.jobs {
		for _, line := range j.lines {
			if completed[line.body] != 1 {
				l.t.Errorf("runners answered line %s %d times, want once", line.id,
					completed[line.body])
			}
			repeated += received[line.body] - 1
			delete(received, line.body)
		}
	}
	if len(received) > 0 {
		l.t.Errorf("runners received %d requests that are no lines", len(received))
	}
	return repeated
}

// use is what the replicas of a day cost.
type use struct {
	starts, most int     // pods, in all and at a time
	killed       int     // pods whose grace period ended before their lines
	hours, ready float64 // replica-hours of the day: in all, of these ready
}

func (l *loop) use() (u use) {
	lives := l.kubelet.lives()
	for _, p := range lives {
		u.starts++
		u.hours += l.day.emulated(p.ended.Sub(p.created)).Hours()
		if !p.ready.IsZero() {
			u.ready += l.day.emulated(p.ended.Sub(p.ready)).Hours()
		}
		if p.killed {
			u.killed++
		}
		at := 0
		for _, q := range lives {
			if !q.created.After(p.created) && q.ended.After(p.created) {
				at++
			}
		}
		u.most = max(u.most, at)
	}
	return u
}

// check runs the day, and checks that no line was lost and none doubled, and that every deadline
// was met. meanwhile runs when all jobs are submitted.
func (l *loop) check(meanwhile func()) (u use) {
	l.t.Helper()
	for i, b := range l.play(meanwhile) {
		l.checkAnswers(l.day.jobs[i], b)
	}
	repeated := l.checkRequests()
	u = l.use()
	if repeated > 0 && u.killed == 0 {
		l.t.Errorf("%d requests were sent again, though no runner ended before its lines", repeated)
	}
	l.t.Logf("%d pods, at most %d at a time, %d killed; %d requests sent again", u.starts, u.most,
		u.killed, repeated)
	l.checkDecisions()
	return u
}

// A Deployment without replicas gets one for a job, and loses it after the job's end.
func TestLoopFromZeroAndBack(t *testing.T) {
	l := startLoop(t, loadDay(t, "one", 60))
	u := l.check(func() {})
	if u.starts != 1 {
		t.Errorf("%d pods were started, want 1", u.starts)
	}
}

// Replicas that are taken away while they work get no new lines, and count as wanted until theirs
// were answered. Then it is they whose pods end, and nothing is sent again.
func TestLoopDrainsBeforePodsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: a drain in real time")
	}
	l := startLoop(t, loadDay(t, "drain", 60))
	l.keda.bound(3, 3)
	awaitReady := func(want int) {
		until(t, func() string {
			if existing, ready := l.kubelet.counts(); existing != want || ready != want {
				return fmt.Sprintf("%d pods, %d of them ready; want %d", existing, ready, want)
			}
			return ""
		})
	}
	awaitReady(3)
	u := l.check(func() {
		until(t, func() string {
			for _, p := range l.kubelet.lives() {
				if p.server == nil || p.server.Requests().Received == 0 {
					return "pod " + p.name + " has no line yet"
				}
			}
			return ""
		})
		l.keda.bound(0, 1)
		awaitReady(1)
	})
	for _, p := range l.kubelet.lives() {
		if p.ledger.Received == 0 {
			t.Errorf("pod %s got no line", p.name)
		}
		if p.unanswered > 0 {
			t.Errorf("pod %s had to end with %d lines in flight", p.name, p.unanswered)
		}
	}
	if u.starts != 3 {
		t.Errorf("%d pods were started, want 3", u.starts)
	}
	l.logTimeline()
}

// Within a part of a day replicas come and go, every deadline is met and no line is lost, for
// little more than the fewest replica-hours. TIDEFILL_TEST_DAY=day runs a whole day, in 24 minutes.
func TestLoopOfADay(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: five hours of a day in as many minutes")
	}
	l := startLoop(t, loadDay(t, cmp.Or(os.Getenv("TIDEFILL_TEST_DAY"), "part"), 60))
	u := l.check(func() {})
	least, simulated := l.day.optimum(t)
	t.Logf("%.3f replica-hours, %.3f of them ready; least %.3f (%.3f), simulated %.3f (%.3f)",
		u.hours, u.ready, least, u.hours/least, simulated, u.hours/simulated)
	l.logTimeline()
	if u.hours > 1.08*least { // 1.057 to 1.062 were measured
		t.Errorf("%.3f replica-hours, want at most 1.08 times the least, %.3f", u.hours, least)
	}
	if u.most != l.day.Scenario.Pool.Max {
		t.Errorf("at most %d replicas at a time, want %d", u.most, l.day.Scenario.Pool.Max)
	}
}

// logTimeline logs what KEDA was answered and how pods lived, in seconds of the day.
func (l *loop) logTimeline() {
	since := func(at time.Time) float64 { return l.day.emulated(at.Sub(l.began)).Seconds() }
	answers, failed := l.keda.said()
	for _, a := range answers {
		l.t.Logf("%7.0f s: %v replicas, active %v", since(a.at), a.replicas, a.active)
	}
	l.t.Logf("%d calls failed", failed)
	for _, p := range l.kubelet.lives() {
		l.t.Logf("pod %s: created %.0f s, ready %.0f s, asked to end %.0f s, ended %.0f s, "+
			"killed %v, %d requests, %d of them in flight when asked", p.name, since(p.created),
			since(p.ready), since(p.askedAt), since(p.ended), p.killed, p.ledger.Received,
			p.unanswered)
	}
}
