package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	hpametrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// keda does for one ScaledObject what KEDA's operator and its metrics adapter do: it asks the
// scaler over gRPC, scales between 0 and 1 by activity, and leaves the numbers above to an HPA,
// which the controller of k8s.io/kubernetes decides for.
type keda struct {
	t         *testing.T
	day       *day
	namespace string
	target    string // the Deployment
	scaler    externalscaler.ExternalScalerClient
	metric    string // as the scaler names it

	mu         sync.Mutex
	object     *externalscaler.ScaledObjectRef
	lastActive time.Time
	answers    []answer // whenever another one came
	failed     int      // calls that failed
}

// answer is what the scaler said.
type answer struct {
	at       time.Time
	replicas float64
	active   bool
}

// The intervals of KEDA and of the HPA, as they are by default, and the cooldown of docs/keda.md.
const (
	pollingInterval = 30 * time.Second
	hpaInterval     = 15 * time.Second
	cooldownPeriod  = 0 * time.Second
)

// startKEDA runs KEDA and the HPA's controller for a Deployment until the test ends.
func (w *world) startKEDA(d *day, address, target, pool string) *keda {
	w.t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(
		insecure.NewCredentials()))
	if err != nil {
		w.t.Fatal(err)
	}
	k := &keda{t: w.t, day: d, namespace: w.namespace, target: target,
		scaler: externalscaler.NewExternalScalerClient(conn),
		object: &externalscaler.ScaledObjectRef{Name: target, Namespace: w.namespace,
			ScalerMetadata: map[string]string{"scalerAddress": address, "pool": pool}}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
		conn.Close()
	})
	k.createHPA(ctx)
	k.runHPA(ctx, &running)
	running.Go(func() { k.poll(ctx) })
	running.Go(func() { k.listen(ctx) })
	return k
}

// createHPA creates the HPA that KEDA's operator creates for the ScaledObject of docs/keda.md.
func (k *keda) createHPA(ctx context.Context) {
	k.t.Helper()
	spec, err := k.scaler.GetMetricSpec(ctx, k.object)
	if err != nil {
		k.t.Fatal(err)
	}
	k.metric = spec.MetricSpecs[0].MetricName
	target := *resource.NewMilliQuantity(int64(1000*spec.MetricSpecs[0].TargetSizeFloat),
		resource.DecimalSI)
	least, none, exact := int32(1), int32(0), resource.MustParse("0")
	// The usual policies, whose periods of 15 s are a second here, the shortest that there is.
	maximum, second := autoscalingv2.MaxChangePolicySelect, int32(1)
	all := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100,
		PeriodSeconds: second}
	four := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4,
		PeriodSeconds: second}
	_, err = plane.admin.AutoscalingV2().HorizontalPodAutoscalers(k.namespace).Create(ctx,
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "keda-hpa-" + k.target},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: "apps/v1", Kind: "Deployment", Name: k.target},
				MinReplicas: &least, MaxReplicas: int32(k.day.Scenario.Pool.Max),
				Metrics: []autoscalingv2.MetricSpec{{
					Type: autoscalingv2.ExternalMetricSourceType,
					External: &autoscalingv2.ExternalMetricSource{
						Metric: autoscalingv2.MetricIdentifier{Name: "s0-" + k.metric},
						Target: autoscalingv2.MetricTarget{
							Type: autoscalingv2.AverageValueMetricType, AverageValue: &target}},
				}},
				Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
					ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &none,
						Tolerance: &exact, SelectPolicy: &maximum,
						Policies: []autoscalingv2.HPAScalingPolicy{all, four}},
					ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &none,
						Tolerance: &exact, SelectPolicy: &maximum,
						Policies: []autoscalingv2.HPAScalingPolicy{all}},
				},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
}

// runHPA runs the HPA's controller, which gets its metrics as through KEDA's adapter.
func (k *keda) runHPA(ctx context.Context, running *sync.WaitGroup) {
	k.t.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(
		plane.admin.Discovery()))
	scales, err := scale.NewForConfig(plane.config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(plane.admin.Discovery()))
	if err != nil {
		k.t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(plane.admin, 0,
		informers.WithNamespace(k.namespace))
	const tolerance = 0.1 // the usual one; the HPA has its own
	controller := podautoscaler.NewHorizontalController(ctx, plane.admin.CoreV1(), scales,
		plane.admin.AutoscalingV2(), mapper, adapter{keda: k},
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods(),
		k.day.real(hpaInterval), k.day.real(5*time.Minute), tolerance, time.Minute, time.Minute)
	factory.Start(ctx.Done())
	running.Go(func() { controller.Run(ctx, 1) })
}

// adapter is KEDA's metrics adapter to the HPA's controller.
type adapter struct {
	hpametrics.MetricsClient // asked for external metrics alone
	keda                     *keda
}

// GetExternalMetric asks the scaler. The values are in thousandths.
func (a adapter) GetExternalMetric(
	name, _ string, _ labels.Selector,
) ([]int64, time.Time, error) {
	if name != "s0-"+a.keda.metric {
		return nil, time.Time{}, fmt.Errorf("there is no metric %s", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	replicas, _, err := a.keda.observe(ctx)
	return []int64{int64(1000 * replicas)}, time.Now(), err
}

// bound changes the bounds in the metadata of the trigger.
func (k *keda) bound(least, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	metadata := maps.Clone(k.object.ScalerMetadata)
	metadata["minReplicas"], metadata["maxReplicas"] = strconv.Itoa(least), strconv.Itoa(most)
	k.object = &externalscaler.ScaledObjectRef{Name: k.object.Name, Namespace: k.object.Namespace,
		ScalerMetadata: metadata}
}

// ref returns the ScaledObject as it is now.
func (k *keda) ref() *externalscaler.ScaledObjectRef {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.object
}

// observe asks the scaler as KEDA does: for the specification, the value, and the activity.
func (k *keda) observe(ctx context.Context) (replicas float64, active bool, err error) {
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if err != nil {
			k.failed++
			return
		}
		last := len(k.answers) - 1
		if last < 0 || k.answers[last].replicas != replicas || k.answers[last].active != active {
			k.answers = append(k.answers, answer{time.Now(), replicas, active})
		}
	}()
	object := k.ref()
	if _, err = k.scaler.GetMetricSpec(ctx, object); err != nil {
		return 0, false, err
	}
	values, err := k.scaler.GetMetrics(ctx, &externalscaler.GetMetricsRequest{
		ScaledObjectRef: object, MetricName: k.metric})
	if err != nil {
		return 0, false, err
	}
	is, err := k.scaler.IsActive(ctx, object)
	if err != nil {
		return 0, false, err
	}
	return values.MetricValues[0].MetricValueFloat, is.Result, nil
}

// poll is KEDA's loop. After an error the replicas stay.
func (k *keda) poll(ctx context.Context) {
	tick := time.NewTicker(k.day.real(pollingInterval))
	defer tick.Stop()
	for {
		if _, active, err := k.observe(ctx); err == nil {
			k.scale(ctx, active)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// listen follows StreamIsActive, of which KEDA regards true alone.
func (k *keda) listen(ctx context.Context) {
	for ctx.Err() == nil {
		stream, err := k.scaler.StreamIsActive(ctx, k.ref())
		for err == nil {
			var is *externalscaler.IsActiveResponse
			if is, err = stream.Recv(); err == nil && is.Result {
				k.scale(ctx, true)
			}
		}
		if !errors.Is(err, io.EOF) {
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}
}

// scale is KEDA's scale executor: from zero to one when active, and from any number to zero when
// inactive for the cooldown.
func (k *keda) scale(ctx context.Context, active bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	api := plane.admin.AppsV1().Deployments(k.namespace)
	object, err := api.GetScale(ctx, k.target, metav1.GetOptions{})
	if err != nil {
		if ctx.Err() == nil {
			k.t.Errorf("read the scale of %s: %v", k.target, err)
		}
		return
	}
	if active {
		k.lastActive = time.Now()
	}
	cooled := k.lastActive.Add(k.day.real(cooldownPeriod)).Before(time.Now())
	switch {
	case active && object.Spec.Replicas == 0:
		object.Spec.Replicas = 1
	case !active && object.Spec.Replicas > 0 && cooled:
		object.Spec.Replicas = 0
	default:
		return
	}
	// The next poll tries again after a conflict.
	_, _ = api.UpdateScale(ctx, k.target, object, metav1.UpdateOptions{})
}

// said returns the answers so far.
func (k *keda) said() (all []answer, failed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(all, k.answers...), k.failed
}
