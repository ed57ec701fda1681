package keda

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale"
)

// scaler answers KEDA.
type scaler struct {
	externalscaler.UnimplementedExternalScalerServer
	cfg      Config
	deps     Deps
	callers  callers
	objects  *objects
	watchers *watchers
	stopped  chan struct{} // closed when streams shall end

	newest atomic.Pointer[indexed]
}

// indexed is a snapshot whose pools are found by name.
type indexed struct {
	snapshot *autoscale.Snapshot
	byName   map[string]*autoscale.PoolSnapshot
}

func newScaler(cfg Config, deps Deps) *scaler {
	return &scaler{cfg: cfg, deps: deps, stopped: make(chan struct{}),
		callers: callers{tls: cfg.TLS.CertFile != "", certificate: cfg.TLS.ClientCAFile != ""},
		objects: newObjects(cfg.Tuning.ForgetAfter, deps.Declare), watchers: newWatchers()}
}

// reference reads the metadata of a caller who may ask, and notes that the ScaledObject does.
func (s *scaler) reference(
	ctx context.Context, ref *externalscaler.ScaledObjectRef,
) (reference, error) {
	if err := s.callers.admit(ctx, ref); err != nil {
		return reference{}, err
	}
	r, err := parse(ref, s.deps.Pools())
	if err != nil {
		return reference{}, err
	}
	return r, s.objects.see(time.Now(), r)
}

// snapshot returns what was decided last, if it is not too old.
func (s *scaler) snapshot() (*indexed, error) {
	snapshot, err := s.deps.Snapshot()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if err := fresh(time.Now(), snapshot, s.cfg.Tuning.StaleAfter); err != nil {
		return nil, err
	}
	if newest := s.newest.Load(); newest != nil && newest.snapshot == snapshot {
		return newest, nil
	}
	next := &indexed{snapshot, make(map[string]*autoscale.PoolSnapshot, len(snapshot.Pools))}
	for i := range snapshot.Pools {
		next.byName[snapshot.Pools[i].Pool] = &snapshot.Pools[i]
	}
	s.newest.Store(next)
	return next, nil
}

// answer returns the answer for a ScaledObject now.
func (s *scaler) answer(r reference) (answer, error) {
	snapshot, err := s.snapshot()
	var pool *autoscale.PoolSnapshot
	if err == nil {
		pool = snapshot.byName[r.pool]
	}
	if r.role == dispatchers {
		if err == nil && pool == nil {
			_, err = answerFor(r, nil)
		}
		work, unknown := s.deps.Dispatching(r.pool)
		return dispatchersFor(r, work, unknown, pool, err)
	}
	if err != nil {
		return answer{}, err
	}
	return answerFor(r, pool)
}

// knows reports whether something can be answered.
func (s *scaler) knows() bool {
	if _, err := s.snapshot(); err == nil {
		return true
	}
	for _, p := range s.deps.Pools() {
		if _, err := s.deps.Dispatching(p.Name); err == nil {
			return true
		}
	}
	return false
}

// GetMetricSpec answers everybody, also while nothing is known: it says only what the caller has
// said, and without it KEDA shows no error and uses no fallback.
func (s *scaler) GetMetricSpec(
	_ context.Context, ref *externalscaler.ScaledObjectRef,
) (*externalscaler.GetMetricSpecResponse, error) {
	return metricSpec(ref), nil
}

// GetMetrics returns the number of replicas. KEDA then asks for IsActive, which may be answered
// from a newer decision: the newest is right in both cases, and the next observation agrees.
func (s *scaler) GetMetrics(
	ctx context.Context, request *externalscaler.GetMetricsRequest,
) (*externalscaler.GetMetricsResponse, error) {
	ref := request.GetScaledObjectRef()
	r, err := s.reference(ctx, ref)
	if err != nil {
		return nil, err
	}
	name := metricName(ref)
	if asked := request.GetMetricName(); asked != name {
		return nil, status.Errorf(codes.NotFound, "ScaledObject %s: there is no metric %q; its "+
			"metric is %s", r.object, shortened(asked), name)
	}
	a, err := s.answer(r)
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{{
		MetricName: name, MetricValue: int64(a.replicas),
		MetricValueFloat: float64(a.replicas)}}}, nil
}

// IsActive reports whether the target must have replicas.
func (s *scaler) IsActive(
	ctx context.Context, ref *externalscaler.ScaledObjectRef,
) (*externalscaler.IsActiveResponse, error) {
	r, err := s.reference(ctx, ref)
	if err != nil {
		return nil, err
	}
	a, err := s.answer(r)
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: a.active}, nil
}

// StreamIsActive sends the state as soon as it is known, and then each change to active. It does
// not repeat that, which would put KEDA's cooldown off, and sends no change to inactive: versions
// of KEDA before 2.18 remove all replicas at once then, without the cooldown.
func (s *scaler) StreamIsActive(
	ref *externalscaler.ScaledObjectRef,
	stream grpc.ServerStreamingServer[externalscaler.IsActiveResponse],
) error {
	r, err := s.reference(stream.Context(), ref)
	if err != nil {
		return err
	}
	defer s.objects.hold(r)()
	w := s.watchers.add(r, s.answer)
	defer s.watchers.remove(w)
	end := time.After(s.streamAge())
	sent, last := false, 0
	for {
		select {
		case <-w.wake:
		case <-end:
			return nil
		case <-s.stopped:
			return nil
		case <-stream.Context().Done():
			return nil
		}
		// Since the last wake the pool may have become inactive and active again.
		active, rises := s.watchers.state(w)
		if !sent || active && rises > last {
			if err := stream.Send(&externalscaler.IsActiveResponse{Result: active}); err != nil {
				return err
			}
		}
		sent, last = true, rises
	}
}

// StreamMetricSpec sends the specification, which does not change as long as the metadata does not.
func (s *scaler) StreamMetricSpec(
	ref *externalscaler.ScaledObjectRef,
	stream grpc.ServerStreamingServer[externalscaler.GetMetricSpecResponse],
) error {
	if err := stream.Send(metricSpec(ref)); err != nil {
		return err
	}
	select {
	case <-time.After(s.streamAge()):
	case <-s.stopped:
	case <-stream.Context().Done():
	}
	return nil
}

// streamAge returns the time that a stream lasts. Streams end by themselves, before their
// connection does: KEDA waits longer and longer after streams that break.
func (s *scaler) streamAge() time.Duration {
	age := s.cfg.Tuning.ConnectionAge
	return age/2 + rand.N(age/2)
}
