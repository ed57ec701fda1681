package keda_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/registry"
)

// decisions stands for the loop that decides.
type decisions struct {
	mu       sync.Mutex
	snapshot *autoscale.Snapshot
	changed  chan struct{}
	declared map[string]autoscale.Declaration
	work     *keda.Dispatching // nil: not known
	before   func(pool string) // called by declare, if it is not nil
}

func (d *decisions) set(pools ...autoscale.PoolSnapshot) {
	d.setAt(time.Now(), pools...)
}

func (d *decisions) setAt(at time.Time, pools ...autoscale.PoolSnapshot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snapshot = &autoscale.Snapshot{At: at, Pools: pools}
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *decisions) Snapshot() (*autoscale.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshot == nil {
		return nil, errors.New("the state of the pools is not loaded yet")
	}
	return d.snapshot, nil
}

func (d *decisions) dispatching(string) (keda.Dispatching, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.work == nil {
		return keda.Dispatching{}, errors.New("the batches of the store are not loaded")
	}
	return *d.work, nil
}

func (d *decisions) setWork(of *keda.Dispatching) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work = of
}

func (d *decisions) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *decisions) declare(pool string, of autoscale.Declaration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil {
		d.before(pool)
	}
	d.declared[pool] = of
}

func (d *decisions) beforeDeclare(call func(pool string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = call
}

func (d *decisions) declaredOf(pool string) autoscale.Declaration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.declared[pool]
}

// wanted returns the snapshot of a pool.
func wanted(pool string, replicas, draining, inFlight int) autoscale.PoolSnapshot {
	return autoscale.PoolSnapshot{Wanted: autoscale.Wanted{Pool: pool, Replicas: replicas,
		Reported: replicas + draining}, Draining: draining, InFlight: inFlight}
}

type world struct {
	t        testing.TB
	d        *decisions
	client   externalscaler.ExternalScalerClient
	conn     *grpc.ClientConn
	registry *prometheus.Registry
	log      *logBuffer
	stop     func()
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.String()
}

// start serves the pools night, chat and pool-0 to pool-999.
func start(t testing.TB, edit ...func(*keda.Config)) *world {
	t.Helper()
	w := &world{t: t, registry: prometheus.NewRegistry(), log: &logBuffer{}, d: &decisions{
		changed: make(chan struct{}), declared: map[string]autoscale.Declaration{}}}
	cfg := keda.DefaultConfig()
	for _, f := range edit {
		f(&cfg)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := keda.New(cfg, keda.Deps{Snapshot: w.d.Snapshot, Changed: w.d.Changed,
		Dispatching: w.d.dispatching,
		Pools:       func() []registry.Pool { return pools }, Declare: w.d.declare,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Registerer: w.registry,
		Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(w.stop)
	w.conn, err = grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.conn.Close() })
	w.client = externalscaler.NewExternalScalerClient(w.conn)
	return w
}

var pools = func() []registry.Pool {
	all := []registry.Pool{{Name: "night", Max: 8}, {Name: "chat", Max: 8}}
	for i := range 1000 {
		all = append(all, registry.Pool{Name: poolName(i), Max: 8})
	}
	return all
}()

// object returns a ScaledObject of a pool, with the metadata that KEDA adds, and pairs of more.
func object(name, pool string, more ...string) *externalscaler.ScaledObjectRef {
	metadata := map[string]string{"pool": pool, "scalerAddress": "tidefill:9090",
		"enableTLS": "true"}
	for i := 0; i < len(more); i += 2 {
		metadata[more[i]] = more[i+1]
	}
	return &externalscaler.ScaledObjectRef{Name: name, Namespace: "llm", ScalerMetadata: metadata}
}

// observe asks as KEDA does: for the specification, the value, and whether the target is active.
func (w *world) observe(
	ref *externalscaler.ScaledObjectRef,
) (value float64, active bool, err error) {
	spec, err := w.client.GetMetricSpec(w.t.Context(), ref)
	if err != nil {
		return 0, false, err
	}
	if len(spec.MetricSpecs) != 1 || spec.MetricSpecs[0].TargetSizeFloat != 1 ||
		spec.MetricSpecs[0].TargetSize != 1 {
		w.t.Fatalf("got the specification %v, want one metric with the target 1", spec)
	}
	metrics, err := w.client.GetMetrics(w.t.Context(), &externalscaler.GetMetricsRequest{
		ScaledObjectRef: ref, MetricName: spec.MetricSpecs[0].MetricName})
	if err != nil {
		return 0, false, err
	}
	is, err := w.client.IsActive(w.t.Context(), ref)
	if err != nil {
		return 0, false, err
	}
	v := metrics.MetricValues[0]
	if float64(v.MetricValue) != v.MetricValueFloat || v.MetricName !=
		spec.MetricSpecs[0].MetricName {
		w.t.Fatalf("got %v: its values differ, or its name", v)
	}
	return v.MetricValueFloat, is.Result, nil
}

func TestAnswersAreThoseOfTheSnapshot(t *testing.T) {
	w := start(t)
	type answer struct {
		Value  float64
		Active bool
	}
	for _, test := range []struct {
		name     string
		snapshot autoscale.PoolSnapshot
		metadata []string
		want     answer
	}{
		{"nothing to do", wanted("night", 0, 0, 0), nil, answer{0, false}},
		{"replicas are wanted", wanted("night", 3, 0, 0), nil, answer{3, true}},
		{"draining ones count", wanted("night", 1, 2, 5), nil, answer{3, true}},
		{"lines in flight are activity", wanted("night", 0, 0, 4), nil, answer{0, true}},
		{"those beyond the maximum drain first", wanted("night", 5, 2, 9),
			[]string{"maxReplicas", "5"}, answer{7, true}},
		{"never fewer", wanted("night", 0, 0, 0), []string{"minReplicas", "2"}, answer{2, true}},
		{"a value from the environment", wanted("night", 2, 0, 0),
			[]string{"minReplicasFromEnv", "4"}, answer{4, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.d.set(test.snapshot)
			value, active, err := w.observe(object("night-gpus", "night", test.metadata...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, answer{value, active}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// A batch needs a dispatcher from its creation on, whether one runs and decides or not. One that
// runs stays until no line is in flight and the replicas beyond the minimum are given back.
func TestDispatchersFollowBatches(t *testing.T) {
	w := start(t)
	ref := object("workers", "night", "role", "dispatchers")
	work := func(batches, dispatchers int) *keda.Dispatching {
		return &keda.Dispatching{Batches: batches, Dispatchers: dispatchers}
	}
	old := time.Now().Add(-time.Hour)
	for _, test := range []struct {
		name               string
		work               *keda.Dispatching
		at                 time.Time // of the decision; zero: there is none
		inFlight, replicas int
		want               string
	}{
		{"nothing is known", nil, time.Time{}, 0, 0, "Unavailable"},
		{"the first batch", work(1, 0), time.Time{}, 0, 0, "1 true"},
		{"no batch, no dispatcher", work(0, 0), time.Time{}, 0, 0, "0 false"},
		{"the decision of one that has ended", work(0, 0), old, 3, 3, "0 false"},
		{"a batch after it", work(2, 0), old, 0, 0, "1 true"},
		{"one runs and has not decided", work(0, 1), time.Time{}, 0, 0, "Unavailable"},
		{"one runs and hangs", work(0, 1), old, 0, 0, "Unavailable"},
		{"a batch without a runner", work(1, 1), time.Now(), 0, 0, "1 true"},
		{"nothing left to do", work(0, 1), time.Now(), 0, 0, "0 false"},
		{"lines in flight", work(0, 1), time.Now(), 3, 0, "1 true"},
		{"replicas to give back", work(0, 1), time.Now(), 0, 2, "1 true"},
		{"the store is away", nil, time.Now(), 0, 0, "Unavailable"},
		{"the store is away, lines in flight", nil, time.Now(), 3, 0, "1 true"},
	} {
		w.d.setWork(test.work)
		w.d.setAt(test.at, wanted("night", test.replicas, 0, test.inFlight))
		value, active, err := w.observe(ref)
		got := fmt.Sprint(value, active)
		if err != nil {
			got = status.Code(err).String()
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s (%v)", test.name, got, test.want, err)
		}
	}
	w.d.set(wanted("night", 0, 0, 0))
	w.d.setWork(work(0, 0))
	value, active, err := w.observe(object("workers", "night", "role", "dispatchers",
		"minReplicas", "2"))
	if err != nil || value != 2 || !active {
		t.Errorf("with minReplicas 2: got %v, %v, %v", value, active, err)
	}
}

// A Service must not withhold the scaler from KEDA while the first dispatcher has to be started.
func TestTheScalerServesWithoutADecision(t *testing.T) {
	w := start(t)
	w.d.setWork(&keda.Dispatching{Batches: 1})
	w.awaitHealth(grpc_health_v1.HealthCheckResponse_SERVING)
	active, _ := w.activity(object("workers", "night", "role", "dispatchers"))
	if !<-active {
		t.Error("a stream that begins with a batch is not active")
	}
	w.d.setWork(&keda.Dispatching{})
	later, _ := w.activity(object("other", "chat", "role", "dispatchers"))
	if <-later {
		t.Error("a stream that begins without a batch is active")
	}
	w.d.setWork(&keda.Dispatching{Batches: 1})
	if !<-later {
		t.Error("a new batch does not activate the target")
	}
}

// Zero drains GPUs, an error keeps them. So nothing that is not known is answered.
func TestUnknownIsAnError(t *testing.T) {
	w := start(t)
	ref := object("night-gpus", "night")
	check := func(why string) {
		t.Helper()
		if _, err := w.client.GetMetricSpec(t.Context(), ref); err != nil {
			t.Errorf("%s: GetMetricSpec: %v", why, err)
		}
		_, err := w.client.IsActive(t.Context(), ref)
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: IsActive: got %v", why, err)
		}
		_, err = w.client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{
			ScaledObjectRef: ref, MetricName: "tidefill-replicas-night"})
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: GetMetrics: got %v", why, err)
		}
	}
	check("not loaded yet")
	w.awaitHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	w.d.set(wanted("chat", 1, 0, 0))
	check("the replicas of pool night are not known")
	w.awaitHealth(grpc_health_v1.HealthCheckResponse_SERVING)
	w.d.setAt(time.Now().Add(-6*time.Minute), wanted("night", 0, 0, 0))
	check("is 6m0s old")
	w.awaitHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	w.d.setAt(time.Now().Add(time.Hour), wanted("night", 0, 0, 0))
	check("synchronize the clocks")
}

func (w *world) awaitHealth(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
	w.t.Helper()
	w.await("the health changes", func() error {
		answer, err := grpc_health_v1.NewHealthClient(w.conn).Check(w.t.Context(),
			&grpc_health_v1.HealthCheckRequest{})
		if err == nil && answer.Status != want {
			err = fmt.Errorf("health is %v, want %v", answer.Status, want)
		}
		return err
	})
}

// Each fault names the ScaledObject, what is wrong and the remedy, and concerns no other object.
func TestFaultsOfMetadata(t *testing.T) {
	w := start(t)
	w.d.set(wanted("night", 2, 0, 0), wanted("chat", 1, 0, 0))
	for _, test := range []struct {
		pool string
		more []string
		code codes.Code
		want string
	}{
		{"", nil, codes.InvalidArgument,
			"metadata.pool is missing; name one of night, chat, pool-0, pool-1, pool-2, 997 more"},
		{"nihgt", nil, codes.NotFound, `there is no pool "nihgt"; did you mean night?`},
		{"night", []string{"maxReplica", "3"}, codes.InvalidArgument,
			"metadata.maxReplica is unknown; did you mean maxReplicas?"},
		{"night", []string{"zzzzzzzz", "3"}, codes.InvalidArgument,
			"metadata.zzzzzzzz is unknown; remove it, or use pool, role"},
		{"night", []string{"minReplicas", "4", "maxReplicas", "3"}, codes.InvalidArgument,
			"metadata.minReplicas is 4, more than maxReplicas, 3"},
		{"night", []string{"maxReplicas", "many"}, codes.InvalidArgument,
			`metadata.maxReplicas is "many", must be a whole number`},
		{"night", []string{"maxReplicas", "0"}, codes.InvalidArgument,
			`metadata.maxReplicas is "0", must be a whole number from 1`},
		{"night", []string{"minReplicas", "9"}, codes.InvalidArgument,
			"metadata.minReplicas is 9, more than the 8 replicas that pool night may have; lower"},
		{"night", []string{"coldStart", "3"}, codes.InvalidArgument,
			`metadata.coldStart is "3", must be a duration`},
		{"night", []string{"cost", "-1"}, codes.InvalidArgument, `metadata.cost is "-1"`},
		{"night", []string{"cost", "NaN"}, codes.InvalidArgument, `metadata.cost is "NaN"`},
		{"night", []string{"cost", "1e300"}, codes.InvalidArgument, `metadata.cost is "1e300"`},
		{"night", []string{"spot", "maybe"}, codes.InvalidArgument, `metadata.spot is "maybe"`},
		{"night", []string{"spot", "1"}, codes.InvalidArgument, `metadata.spot is "1"`},
		{"night", []string{"role", "dispatchers", "spot", "true"}, codes.InvalidArgument,
			"metadata.spot has no effect: it describes runners"},
		{"night", []string{"role", "cooks"}, codes.InvalidArgument,
			`metadata.role is "cooks", must be runners or dispatchers`},
		{"night", []string{"metricType", "Value"}, codes.InvalidArgument,
			"metadata.metricType has no effect: it is a field of the trigger, beside metadata"},
		{"night", []string{"cost", "1", "costFromEnv", "2"}, codes.InvalidArgument,
			"metadata.costFromEnv is given twice"},
	} {
		ref := object("broken", test.pool, test.more...)
		_, err := w.client.IsActive(t.Context(), ref)
		if status.Code(err) != test.code || !strings.Contains(err.Error(), test.want) ||
			!strings.Contains(err.Error(), "ScaledObject llm/broken: ") {
			t.Errorf("%s %v: got %v", test.pool, test.more, err)
		}
		if value, _, err := w.observe(object("good", "chat")); err != nil || value != 1 {
			t.Errorf("after %v another object gets %v, %v", test.more, value, err)
		}
	}
}

// Two ScaledObjects of one pool would start twice as many replicas.
func TestAPoolHasOneScaledObjectOfARole(t *testing.T) {
	w := start(t, func(c *keda.Config) { c.Tuning.ForgetAfter = time.Second })
	w.d.set(wanted("night", 2, 0, 0))
	if _, _, err := w.observe(object("first", "night")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.observe(object("dispatch", "night", "role", "dispatchers")); err != nil {
		t.Errorf("the other role: %v", err)
	}
	_, _, err := w.observe(object("second", "night"))
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(),
		"ScaledObject llm/second: the runners of pool night are scaled by ScaledObject llm/first") {
		t.Errorf("got %v", err)
	}
	// The first one is removed and forgotten.
	w.await("the second object is answered", func() error {
		_, _, err := w.observe(object("second", "night"))
		return err
	})
}

// A ScaledObject that only waits for a push asks rarely.
func TestAnOpenStreamKeepsAPool(t *testing.T) {
	w := start(t, func(c *keda.Config) { c.Tuning.ForgetAfter = time.Second })
	w.d.set(wanted("night", 2, 0, 0))
	ctx, closeStream := context.WithCancel(t.Context())
	stream, err := w.client.StreamIsActive(ctx, object("first", "night", "minReplicas", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 2500*time.Millisecond; {
		if _, _, err := w.observe(object("second", "night")); err == nil {
			t.Fatal("a second ScaledObject is answered while the first has a stream")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if w.d.declaredOf("night").Min == nil {
		t.Error("what the first says of the pool is forgotten while it has a stream")
	}
	closeStream()
	w.await("what was declared is forgotten", func() error {
		if of := w.d.declaredOf("night"); of.Min != nil {
			return fmt.Errorf("declared are %d replicas at least", *of.Min)
		}
		return nil
	})
}

// A ScaledObject may be edited. Two of its triggers may not contradict each other.
func TestTriggersOfAScaledObjectAgree(t *testing.T) {
	w := start(t)
	w.d.set(wanted("night", 2, 0, 0))
	one := object("night-gpus", "night", "minReplicas", "1")
	three := object("night-gpus", "night", "minReplicas", "3")
	for _, ref := range []*externalscaler.ScaledObjectRef{one, three, three} {
		if _, _, err := w.observe(ref); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := w.observe(one)
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(),
		"ScaledObject llm/night-gpus: two of its triggers say different things") {
		t.Errorf("got %v", err)
	}
	if value, _, err := w.observe(three); err != nil || value != 3 {
		t.Errorf("the newer one gets %v, %v", value, err)
	}
}

// await waits until a condition holds.
func (w *world) await(what string, holds func() error) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for err := holds(); err != nil; err = holds() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain until %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestMetadataIsDeclared(t *testing.T) {
	w := start(t)
	w.d.set(wanted("night", 2, 0, 0))
	if _, _, err := w.observe(object("night-gpus", "night", "minReplicas", "1", "maxReplicas", "6",
		"coldStart", "4m", "cost", "0.4", "spot", "true")); err != nil {
		t.Fatal(err)
	}
	least, most, cold, price, reclaim := 1, 6, 4*time.Minute, 0.4, 0.05
	want := map[string]autoscale.Declaration{"night": {Min: &least, Max: &most, ColdStart: &cold,
		Price: &price, Reclaim: &reclaim}}
	if diff := cmp.Diff(want, w.d.declared); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A stream says the state first, and then each change to active. It ends cleanly with the server.
func TestStreamIsActive(t *testing.T) {
	w := start(t)
	ref := object("night-gpus", "night")
	got, ended := w.activity(ref)
	next := func() bool {
		t.Helper()
		select {
		case is := <-got:
			return is
		case err := <-ended:
			t.Fatalf("the stream ended: %v", err)
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was sent")
		}
		return false
	}
	w.d.set(wanted("night", 0, 0, 0)) // the state was not known before
	if next() {
		t.Error("the first state is active")
	}
	for range 3 {
		for i := range 5 {
			w.d.set(wanted("night", i+1, 0, 0))
		}
		if !next() {
			t.Error("replicas are wanted, and nothing says so")
		}
		w.d.set(wanted("night", 0, 0, 0))
		// A new stream says what others have seen: the server has noticed the change.
		others, _ := w.activity(ref)
		if <-others {
			t.Error("a new stream says that the pool is active")
		}
	}
	w.stop()
	if err := <-ended; err.Error() != "EOF" {
		t.Errorf("the stream ended with %v, want EOF", err)
	}
	if n := len(got); n > 0 {
		t.Errorf("%d answers more than changes to active", n)
	}
}

// activity opens a stream and returns what it sends.
func (w *world) activity(
	ref *externalscaler.ScaledObjectRef,
) (sent chan bool, ended chan error) {
	w.t.Helper()
	stream, err := w.client.StreamIsActive(w.t.Context(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	sent, ended = make(chan bool, 100), make(chan error, 1)
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			sent <- answer.Result
		}
	}()
	return sent, ended
}

func TestStreamMetricSpecSaysWhatGetMetricSpecDoes(t *testing.T) {
	w := start(t, func(c *keda.Config) { c.Tuning.ConnectionAge = time.Second })
	ref := object("night-gpus", "night")
	stream, err := w.client.StreamMetricSpec(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := w.client.GetMetricSpec(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if streamed.String() != asked.String() {
		t.Errorf("streamed %v, asked %v", streamed, asked)
	}
	if _, err := stream.Recv(); err == nil || err.Error() != "EOF" {
		t.Errorf("the stream ended with %v, want EOF at the age of the connection", err)
	}
}

// KEDA shows the errors of GetMetrics to users, but not those of GetMetricSpec.
func TestGetMetricSpecAnswersEverybody(t *testing.T) {
	w := start(t)
	for _, test := range []struct {
		pool string
		more []string
		want string
	}{
		{"night", nil, "tidefill-replicas-night"},
		{"night", []string{"role", "dispatchers"}, "tidefill-dispatchers-night"},
		{"night", []string{"maxReplica", "x"}, "tidefill-replicas-night"},
		{"", nil, "tidefill-replicas-"},
		{"Night/../%2f€", nil, "tidefill-replicas-night-----2f-"},
		{strings.Repeat("x", 5000), nil, "tidefill-replicas-" + strings.Repeat("x", 63)},
	} {
		spec, err := w.client.GetMetricSpec(t.Context(), object("o", test.pool, test.more...))
		if err != nil || spec.MetricSpecs[0].MetricName != test.want {
			t.Errorf("%q %v: got %v, %v", test.pool, test.more, spec, err)
		}
	}
}
