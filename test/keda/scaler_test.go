// Package keda_test runs KEDA's own scaler clients against the scaler of this project. It is a
// module of its own because that package of KEDA links the SDKs of all clouds. It runs without the
// race detector, which would compile all of them again.
package keda_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	v2 "k8s.io/api/autoscaling/v2"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/test/keda/scalers"
)

// patience is how long something is waited for. KEDA waits two seconds before it opens a stream
// again.
const patience = 20 * time.Second

// decisions stands for the loop that decides.
type decisions struct {
	mu       sync.Mutex
	snapshot *autoscale.Snapshot
	changed  chan struct{}
	batches  int          // that need a dispatcher
	hanging  sync.RWMutex // locked for writing: whoever asks hangs
}

func newDecisions() *decisions { return &decisions{changed: make(chan struct{})} }

// set decides a number of replicas of the pool night.
func (d *decisions) set(replicas int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snapshot = &autoscale.Snapshot{At: time.Now(), Pools: []autoscale.PoolSnapshot{{
		Wanted: autoscale.Wanted{Pool: "night", Replicas: replicas, Reported: replicas}}}}
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *decisions) Snapshot() (*autoscale.Snapshot, error) {
	d.hanging.RLock()
	defer d.hanging.RUnlock()
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
	return keda.Dispatching{Batches: d.batches}, nil
}

func (d *decisions) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// serve serves the scaler on an address, a free one if it ends in :0.
func serve(
	t *testing.T, d *decisions, address string, edit ...func(*keda.Config),
) (at string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	cfg := keda.DefaultConfig()
	for _, f := range edit {
		f(&cfg)
	}
	s, err := keda.New(cfg, keda.Deps{Snapshot: d.Snapshot, Changed: d.Changed,
		Dispatching: d.dispatching,
		Pools: func() []registry.Pool {
			return []registry.Pool{{Name: "night"}}
		},
		Declare: func(string, autoscale.Declaration) {},
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)), Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run the scaler: %v", err)
		}
	})
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// trigger is the configuration of a trigger of the ScaledObject llm/night-gpus.
func trigger(address string, metadata map[string]string) *scalersconfig.ScalerConfig {
	all := map[string]string{"scalerAddress": address, "pool": "night"}
	for key, value := range metadata {
		all[key] = value
	}
	return &scalersconfig.ScalerConfig{ScalableObjectName: "night-gpus",
		ScalableObjectNamespace: "llm", ScalableObjectType: "ScaledObject", TriggerIndex: 3,
		TriggerMetadata: all, MetricType: v2.AverageValueMetricType,
		ResolvedEnv: map[string]string{"POOL": "night"}}
}

func pull(t *testing.T, cfg *scalersconfig.ScalerConfig) scalers.Scaler {
	t.Helper()
	s, err := scalers.NewExternalScaler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// observe asks for value and activity of the metric that the scaler names.
func observe(t *testing.T, s scalers.Scaler) (value float64, active bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const name = "s3-tidefill-replicas-night"
	metrics, active, err := s.GetMetricsAndActivity(ctx, name)
	if err != nil {
		return 0, false, err
	}
	if len(metrics) != 1 || metrics[0].MetricName != name {
		t.Fatalf("got the metrics %v", metrics)
	}
	return metrics[0].Value.AsApproximateFloat64(), active, nil
}

func TestKEDAReadsNumbersAndActivity(t *testing.T) {
	d := newDecisions()
	address, _ := serve(t, d, "127.0.0.1:0")
	s := pull(t, trigger(address, nil))
	d.set(0)
	spec := s.GetMetricSpecForScaling(t.Context())
	if len(spec) != 1 || spec[0].External.Metric.Name != "s3-tidefill-replicas-night" ||
		spec[0].External.Target.AverageValue.Value() != 1 {
		t.Fatalf("KEDA builds an HPA of %+v", spec)
	}
	for _, replicas := range []int{0, 7, 1, 0} {
		d.set(replicas)
		value, active, err := observe(t, s)
		if err != nil || value != float64(replicas) || active != (replicas > 0) {
			t.Errorf("%d wanted: KEDA reads %v, %v, %v", replicas, value, active, err)
		}
	}
}

// KEDA removes replicas after a zero, and keeps them after an error.
func TestKEDAGetsAnErrorWhileNothingIsKnown(t *testing.T) {
	address, _ := serve(t, newDecisions(), "127.0.0.1:0")
	s := pull(t, trigger(address, nil))
	if spec := s.GetMetricSpecForScaling(t.Context()); len(spec) != 1 {
		t.Errorf("KEDA gets the specification %v, and builds no HPA", spec)
	}
	if value, active, err := observe(t, s); err == nil || !strings.Contains(err.Error(),
		"not loaded yet") {
		t.Errorf("KEDA reads %v, %v, %v", value, active, err)
	}
}

// KEDA shows users the errors of values, and writes those of specifications to its own log only.
func TestKEDAReportsFaultsOfMetadata(t *testing.T) {
	d := newDecisions()
	d.set(2)
	address, _ := serve(t, d, "127.0.0.1:0")
	for want, metadata := range map[string]map[string]string{
		`there is no pool "nigth"; did you mean night?`: {"pool": "nigth"},
		"metadata.maxReplica is unknown; did you mean":  {"maxReplica": "3"},
		`metadata.minReplicas is "-\x00€"`:              {"minReplicas": "-\x00€"},
		"metadata.coldStart is \"" + strings.Repeat("9", 80): {
			"coldStart": strings.Repeat("9", 5000)},
		"metadata.minReplicas is 5, more than maxReplicas, 4": {"minReplicas": "5",
			"maxReplicas": "4"},
	} {
		s := pull(t, trigger(address, metadata))
		spec := s.GetMetricSpecForScaling(t.Context())
		if len(spec) != 1 {
			t.Fatalf("%v: KEDA gets the specification %v, and asks for no value", metadata, spec)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, _, err := s.GetMetricsAndActivity(ctx, spec[0].External.Metric.Name)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "ScaledObject llm/night-gpus") {
			t.Errorf("%v: KEDA reports %v", metadata, err)
		}
	}
	if value, _, err := observe(t, pull(t, trigger(address, nil))); err != nil || value != 2 {
		t.Errorf("the good object reads %v, %v", value, err)
	}
}

// A pool from the environment of the target's container.
func TestKEDAResolvesEnvironment(t *testing.T) {
	d := newDecisions()
	d.set(2)
	address, _ := serve(t, d, "127.0.0.1:0")
	cfg := trigger(address, map[string]string{"poolFromEnv": "POOL"})
	delete(cfg.TriggerMetadata, "pool")
	if value, _, err := observe(t, pull(t, cfg)); err != nil || value != 2 {
		t.Errorf("KEDA reads %v, %v", value, err)
	}
}

func TestKEDAGetsAnErrorWhenTheScalerIsGone(t *testing.T) {
	d := newDecisions()
	d.set(2)
	address, stop := serve(t, d, "127.0.0.1:0")
	s := pull(t, trigger(address, nil))
	if value, _, err := observe(t, s); err != nil || value != 2 {
		t.Fatalf("KEDA reads %v, %v", value, err)
	}
	stop()
	if value, active, err := observe(t, s); err == nil {
		t.Errorf("KEDA reads %v, %v from a scaler that is gone", value, active)
	}
	serve(t, d, address)
	deadline := time.Now().Add(patience)
	for {
		value, _, err := observe(t, s)
		if err == nil && value == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("KEDA reads %v, %v after a restart", value, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// KEDA has no time limit of its own for most calls. An error keeps the replicas.
func TestKEDAGetsAnErrorWhenTheScalerHangs(t *testing.T) {
	d := newDecisions()
	d.set(2)
	address, _ := serve(t, d, "127.0.0.1:0", func(c *keda.Config) {
		c.Tuning.CallLimit = time.Second
	})
	s := pull(t, trigger(address, nil))
	d.hanging.Lock()
	value, active, err := observe(t, s)
	d.hanging.Unlock()
	if err == nil || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("KEDA reads %v, %v, %v", value, active, err)
	}
	if value, _, err := observe(t, s); err != nil || value != 2 {
		t.Errorf("KEDA reads %v, %v afterwards", value, err)
	}
}

// A slow connection delays answers, and a frozen one leads to errors. None leads to zero.
func TestKEDAOverASlowConnection(t *testing.T) {
	d := newDecisions()
	d.set(2)
	address, _ := serve(t, d, "127.0.0.1:0")
	slow := newProxy(t, address)
	s := pull(t, trigger(slow.address, nil))
	slow.delay(200 * time.Millisecond)
	if value, active, err := observe(t, s); err != nil || value != 2 || !active {
		t.Errorf("KEDA reads %v, %v, %v over a slow connection", value, active, err)
	}
	slow.delay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	metrics, active, err := s.GetMetricsAndActivity(ctx, "s3-tidefill-replicas-night")
	if err == nil {
		t.Errorf("KEDA reads %v, %v over a frozen connection", metrics, active)
	}
}

// push runs KEDA's push scaler and returns what it is pushed.
func push(t *testing.T, cfg *scalersconfig.ScalerConfig) (scalers.PushScaler, chan bool) {
	t.Helper()
	s, err := scalers.NewExternalPushScaler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	pushed := make(chan bool, 100)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go s.Run(ctx, pushed)
	return s, pushed
}

func await(t *testing.T, pushed chan bool, want bool) (took time.Duration) {
	t.Helper()
	begun := time.Now()
	select {
	case active := <-pushed:
		if active != want {
			t.Fatalf("pushed %v, want %v", active, want)
		}
	case <-time.After(patience):
		t.Fatalf("nothing was pushed, want %v", want)
	}
	return time.Since(begun)
}

// A push arrives at once, and again after the scaler has restarted, when the state is sent anew.
func TestKEDAIsPushedActivity(t *testing.T) {
	d := newDecisions()
	d.set(0)
	address, stop := serve(t, d, "127.0.0.1:0")
	_, pushed := push(t, trigger(address, nil))
	await(t, pushed, false)
	d.set(3)
	if took := await(t, pushed, true); took > time.Second {
		t.Errorf("a push took %v, want a second at most", took)
	}
	d.set(4) // no change of activity, which would put KEDA's cooldown off
	// The scaler ends its streams cleanly each time, so that KEDA never waits longer than the first
	// time, two seconds.
	for range 2 {
		stop()
		d.set(1)
		begun := time.Now()
		_, stop = serve(t, d, address)
		await(t, pushed, true)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("KEDA was without pushes for %v", took)
		}
	}
	if n := len(pushed); n > 0 {
		t.Errorf("%d pushes more than changes", n)
	}
}

// Streams and connections that end by age are opened again, and nothing is lost meanwhile.
func TestKEDAIsPushedOverTheAgeOfConnections(t *testing.T) {
	d := newDecisions()
	d.set(0)
	address, _ := serve(t, d, "127.0.0.1:0", func(c *keda.Config) {
		c.Tuning.ConnectionAge = time.Second
	})
	_, pushed := push(t, trigger(address, nil))
	for range 3 { // once for each stream
		await(t, pushed, false)
	}
	d.set(1)
	late := time.After(patience)
	for active := false; !active; { // a stream opened before may have sent false once more
		select {
		case active = <-pushed:
		case <-late:
			t.Fatal("no activity was pushed")
		}
	}
}

// The specification that is streamed is the one that is asked for.
func TestKEDAIsPushedTheSpecification(t *testing.T) {
	d := newDecisions()
	address, _ := serve(t, d, "127.0.0.1:0")
	s, _ := push(t, trigger(address, nil))
	asked := s.GetMetricSpecForScaling(t.Context())
	pusher, ok := s.(interface{ MetricSpecChan() <-chan []v2.MetricSpec })
	if !ok {
		t.Fatalf("%T has no channel of specifications", s)
	}
	select {
	case streamed := <-pusher.MetricSpecChan():
		if !reflect.DeepEqual(streamed, asked) {
			t.Errorf("streamed %+v, asked %+v", streamed, asked)
		}
	case <-time.After(patience):
		t.Fatal("no specification was streamed")
	}
}

func TestKEDAOverTLS(t *testing.T) {
	files := func(name string) string { return filepath.Join(t.TempDir(), name) }
	authority := tlstest.NewAuthority(t)
	cert, key, ca := files("cert.pem"), files("key.pem"), files("ca.pem")
	authority.WritePair(cert, key)
	authority.WriteCA(ca)
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	d := newDecisions()
	d.set(2)
	plain, _ := serve(t, d, "127.0.0.1:0", func(c *keda.Config) {
		c.TLS.CertFile, c.TLS.KeyFile = cert, key
	})
	mutual, _ := serve(t, d, "127.0.0.1:0", func(c *keda.Config) {
		c.TLS = keda.TLSConfig{CertFile: cert, KeyFile: key, ClientCAFile: ca}
	})
	pair := map[string]string{"caCert": read(ca), "tlsClientCert": read(cert),
		"tlsClientKey": read(key)}
	for _, test := range []struct {
		name, address string
		auth          map[string]string
		works         bool
	}{
		{"TLS with the authority", plain, map[string]string{"caCert": read(ca)}, true},
		{"TLS without the authority", plain, nil, false},
		{"mTLS with a client certificate", mutual, pair, true},
		{"mTLS without one", mutual, map[string]string{"caCert": read(ca)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := trigger(test.address, map[string]string{"enableTLS": "true"})
			cfg.AuthParams = test.auth
			value, active, err := observe(t, pull(t, cfg))
			if (err == nil) != test.works || err == nil && value != 2 {
				t.Errorf("KEDA reads %v, %v, %v", value, active, err)
			}
		})
	}
	// KEDA shows its user these errors.
	_, _, err := observe(t, pull(t, trigger(mutual, nil)))
	if err == nil || !strings.Contains(err.Error(), "ScaledObject llm/night-gpus: the scaler "+
		"requires TLS; add enableTLS") {
		t.Errorf("without TLS, KEDA reads the error %v", err)
	}
	cfg := trigger(mutual, map[string]string{"enableTLS": "true"})
	cfg.AuthParams = map[string]string{"caCert": read(ca)}
	_, _, err = observe(t, pull(t, cfg))
	if err == nil || !strings.Contains(err.Error(), "ScaledObject llm/night-gpus: the scaler "+
		"requires a client certificate; add tlsClientCert") {
		t.Errorf("without a client certificate, KEDA reads the error %v", err)
	}
}

// Nothing is decided before the first dispatcher runs, which KEDA starts for a batch.
func TestKEDAStartsTheFirstDispatcher(t *testing.T) {
	d := newDecisions()
	address, _ := serve(t, d, "127.0.0.1:0")
	s := pull(t, trigger(address, map[string]string{"role": "dispatchers"}))
	for _, batches := range []int{0, 1, 0} {
		d.mu.Lock()
		d.batches = batches
		d.mu.Unlock()
		metrics, active, err := s.GetMetricsAndActivity(t.Context(),
			"s3-tidefill-dispatchers-night")
		if err != nil || active != (batches > 0) ||
			metrics[0].Value.Value() != int64(batches) {
			t.Errorf("with %d batches: got %v, %v, %v", batches, metrics, active, err)
		}
	}
}
