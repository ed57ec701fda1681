package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestConfigMapIsFollowed(t *testing.T) {
	client := fake.NewClientset()
	var forbidden atomic.Bool
	forbidden.Store(true)
	client.PrependReactor("list", "configmaps", func(a clienttesting.Action) (
		bool, runtime.Object, error,
	) {
		if got := a.(clienttesting.ListAction).GetListRestrictions().Fields.String(); got !=
			"metadata.name=profiles" {
			t.Errorf("listed by the fields %q", got)
		}
		if !forbidden.Load() {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
			errors.New("it may not"))
	})
	m := newConfigMap(&clients{typed: client}, "aibrix-system", "profiles")
	if _, listed, err := m.Read(); listed || !errors.Is(err, errNoAnswer) {
		t.Errorf("before it runs: listed %v, error %v", listed, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	await := func(want string) {
		t.Helper()
		awaitThat(t, "it is "+want, func() bool {
			entries, listed, err := m.Read()
			got := fmt.Sprint(entries, listed)
			if err != nil {
				got = err.Error()
			}
			return strings.HasSuffix(got, want)
		})
	}
	await(`add to a Role in namespace aibrix-system that is bound to this user: apiGroups [""], ` +
		`resources ["configmaps"], verbs ["list"], resourceNames ["profiles"] ` +
		`(docs/kubernetes.md has all rules)`)
	select {
	case <-m.Listed():
		t.Error("it is listed, and may not be")
	default:
	}
	forbidden.Store(false)
	<-m.Listed()
	await("map[] true")
	awaitThat(t, "the fake server has a watch", func() bool {
		return m.entries.source.lostAt().IsZero()
	})
	api := client.CoreV1().ConfigMaps("aibrix-system")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "profiles"},
		Data: map[string]string{"a": "1"}}
	if _, err := api.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("map[a:1] true")
	object.Data = map[string]string{"a": "2"}
	if _, err := api.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("map[a:2] true")
	if err := api.Delete(t.Context(), "profiles", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("map[] true")
}

// What client-go returns for closed connections is no open watch.
func TestClosedConnectionsAreAFault(t *testing.T) {
	m := newConfigMap(&clients{typed: fake.NewClientset()}, "aibrix-system", "profiles")
	s := m.entries.source
	s.query.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return watch.NewEmptyWatch(), nil
	}
	if _, err := s.WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errClosed) {
		t.Errorf("the watch returned %v", err)
	}
	if err := m.entries.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if _, listed, err := m.Read(); !listed || !errors.Is(err, errClosed) || s.lostAt().IsZero() {
		t.Errorf("listed %v, error %v", listed, err)
	}
	m.report(s.query.object, nil)
	s.lost = time.Now().Add(-2 * answerWithin)
	if _, _, err := m.Read(); !errors.Is(err, errNoAnswer) {
		t.Errorf("long after the end of the watch: error %v", err)
	}
}

func TestConfigMapOutsideOfACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := NewConfigMaps(DefaultConfig(), ConfigMaps{"aibrix-system", []string{"profiles"}})
	if err == nil || !strings.Contains(err.Error(), "namespace aibrix-system") ||
		!strings.Contains(err.Error(), "or remove pools[].kubernetes and registry.kubernetes") {
		t.Errorf("got %v", err)
	}
}
