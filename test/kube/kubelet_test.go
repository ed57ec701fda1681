package kube_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tidefill/tidefill/runner/emulator"
)

// kubelet runs an emulated runner for each pod of a namespace: it listens after a cold start, and
// drains before it ends.
type kubelet struct {
	t         *testing.T
	day       *day
	namespace string
	port      int

	running sync.WaitGroup
	mu      sync.Mutex
	pods    map[string]*podRun
	number  int // of pods so far
	random  *rand.Rand
}

// podRun is the life of a pod.
type podRun struct {
	name           string
	number         int
	cold           time.Duration    // of its start, in real time
	created, ready time.Time        // ready: zero until then
	askedAt        time.Time        // to end; zero: not yet
	ended          time.Time        // zero: it runs
	unanswered     int              // requests in flight when it was asked to end
	killed         bool             // its grace period ended before its lines
	server         *emulator.Server // nil: it is not ready yet
	ledger         emulator.Ledger

	asked chan struct{} // closed when it shall end
	grace time.Duration
}

// startKubelet runs pods until the test ends.
func (w *world) startKubelet(d *day) *kubelet {
	w.t.Helper()
	port, err := freePort()
	if err != nil {
		w.t.Fatal(err)
	}
	k := &kubelet{t: w.t, day: d, namespace: w.namespace, port: port, pods: map[string]*podRun{},
		random: rand.New(rand.NewPCG(d.Seed, 1))}
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(plane.admin, 0,
		informers.WithNamespace(w.namespace))
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.seen(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.seen(ctx, o.(*corev1.Pod)) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	factory.Start(ctx.Done())
	w.t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		k.running.Wait()
	})
	return k
}

// seen takes over the state of a pod.
func (k *kubelet) seen(ctx context.Context, p *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run := k.pods[p.Name]
	if run == nil {
		k.number++
		run = &podRun{name: p.Name, number: k.number, cold: k.coldStart(), created: time.Now(),
			asked: make(chan struct{})}
		k.pods[p.Name] = run
		k.running.Go(func() {
			if err := k.run(ctx, run); err != nil && ctx.Err() == nil {
				k.t.Errorf("run pod %s: %v", run.name, err)
			}
		})
	}
	if p.DeletionTimestamp != nil && run.grace == 0 {
		run.grace = time.Duration(*p.DeletionGracePeriodSeconds)*time.Second + 1
		run.askedAt = time.Now()
		close(run.asked)
	}
}

// coldStart draws how long a pod takes to start, as the scenario has it.
func (k *kubelet) coldStart() time.Duration {
	s := k.day.Scenario.Pool.Start
	took := time.Duration(float64(s.Median) * math.Exp(s.Sigma*k.random.NormFloat64()))
	return k.day.real(min(max(took, s.Min), s.Max))
}

// run is the life of a pod.
func (k *kubelet) run(ctx context.Context, p *podRun) error {
	defer func() {
		k.mu.Lock()
		p.ended = time.Now()
		k.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return nil
	case <-p.asked:
		return k.remove(ctx, p)
	case <-time.After(p.cold):
	}
	server, err := emulator.New(k.day.runner(p.number))
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.9.%d.%d", p.number/250, p.number%250+1)
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, k.port))
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { _ = server.Run(serving) })
	web := &http.Server{Handler: server.Handler()}
	parts.Go(func() { _ = web.Serve(listener) }) // it ends with Close
	defer func() {
		web.Close()
		stop()
		parts.Wait()
		k.mu.Lock()
		p.ledger = server.Requests()
		k.mu.Unlock()
	}()
	if err := k.report(ctx, p, address); err != nil {
		return err
	}
	k.mu.Lock()
	p.ready, p.server = time.Now(), server
	k.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil
	case <-p.asked:
	}
	k.mu.Lock()
	p.unanswered = server.Requests().InFlight
	k.mu.Unlock()
	k.drain(ctx, p, server)
	web.Close()
	return k.remove(ctx, p)
}

// drain waits, as vLLM does after SIGTERM, until the requests in flight were answered or the grace
// period has ended.
func (k *kubelet) drain(ctx context.Context, p *podRun, server *emulator.Server) {
	end := time.After(p.grace)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for server.Requests().InFlight > 0 {
		select {
		case <-ctx.Done():
			return
		case <-end:
			k.mu.Lock()
			p.killed = true
			k.mu.Unlock()
			return
		case <-tick.C:
		}
	}
}

// report reports a pod as ready at an address.
func (k *kubelet) report(ctx context.Context, p *podRun, address string) error {
	api := plane.admin.CoreV1().Pods(k.namespace)
	for {
		object, err := api.Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now()
		object.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address,
			PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
				Status: corev1.ConditionTrue, LastTransitionTime: now}}}
		_, err = api.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// remove removes the object of a pod that has ended.
func (k *kubelet) remove(ctx context.Context, p *podRun) error {
	now := int64(0)
	return plane.admin.CoreV1().Pods(k.namespace).Delete(ctx, p.name,
		metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// counts returns how many pods exist and how many of them are ready.
func (k *kubelet) counts() (existing, ready int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.ended.IsZero() {
			existing++
			if !p.ready.IsZero() {
				ready++
			}
		}
	}
	return existing, ready
}

// lives returns the lives of all pods so far.
func (k *kubelet) lives() (all []podRun) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b podRun) int { return a.number - b.number })
	return all
}
