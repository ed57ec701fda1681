package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
	registrykube "github.com/tidefill/tidefill/registry/kube"
)

// reader reads templates and profiles as a daemon does.
type reader struct {
	sources   []*registrykube.Source
	documents [][]registry.Document // of each source
	catalogs  *registry.Catalogs
}

// reader follows the ConfigMaps of a namespace as a user, until the test ends.
func (w *world) reader(user string) *reader {
	w.t.Helper()
	cfg, in := kube.DefaultConfig(), inNamespace(w.namespace)
	cfg.Kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := plane.kubeconfig(cfg.Kubeconfig, plane.address(), user, "default"); err != nil {
		w.t.Fatal(err)
	}
	all, err := kube.NewConfigMaps(cfg, configMapsOf(in))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	r := &reader{}
	for i, m := range all {
		running.Go(func() { m.Run(ctx) })
		r.sources = append(r.sources, registrykube.New(in, in.Names()[i], m))
	}
	r.documents = make([][]registry.Document, len(all))
	return r
}

func inNamespace(namespace string) registrykube.Config {
	in := registrykube.DefaultConfig()
	in.Namespace = namespace
	return in
}

func configMapsOf(in registrykube.Config) kube.ConfigMaps {
	return kube.ConfigMaps{Namespace: in.Namespace, Names: in.Names()}
}

// read reads what has changed, and returns why the API server can't be asked.
func (r *reader) read() (err error) {
	changed := false
	var all []registry.Document
	for i, s := range r.sources {
		documents, fresh, fault := s.Read()
		err = errors.Join(err, fault)
		if fresh {
			r.documents[i], changed = documents, true
		}
		all = append(all, r.documents[i]...)
	}
	if changed || r.catalogs == nil {
		r.catalogs = r.catalogs.Next(time.Now(), all)
	}
	return err
}

// describe shows the templates, the profiles with their limits of lines, the default, and what is
// refused.
func (r *reader) describe() string {
	var parts []string
	for _, e := range r.catalogs.Templates() {
		parts = append(parts, fmt.Sprintf("%s %s", e.Item.Key(), e.Item.Status))
	}
	for _, e := range r.catalogs.Profiles() {
		text := fmt.Sprintf("%s %d", e.Item.Name, e.Item.Spec.Quota.MaxRequestsPerBatch)
		if r.catalogs.Standard() == e.Item.Name {
			text += " default"
		}
		parts = append(parts, text)
	}
	for _, f := range r.catalogs.Refused() {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, ", ")
}

// awaitAll waits until every reader has read the same, and no request fails.
func awaitAll(t *testing.T, want string, readers ...*reader) {
	t.Helper()
	for i, r := range readers {
		until(t, func() string {
			if err := r.read(); err != nil {
				return err.Error()
			}
			if got := r.describe(); got != want {
				return fmt.Sprintf("daemon %d has %q, want %q", i, got, want)
			}
			return ""
		})
	}
}

// edit replaces a text in an entry of a ConfigMap.
func (w *world) edit(name, key, old, replacement string) {
	w.t.Helper()
	api := plane.admin.CoreV1().ConfigMaps(w.namespace)
	m, err := api.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	before := m.Data[key]
	if m.Data[key] = strings.Replace(before, old, replacement, 1); m.Data[key] == before {
		w.t.Fatalf("%s of %s has no %q", key, name, old)
	}
	if _, err := api.Update(w.t.Context(), m, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// Two daemons with the Role that is published see the same, whatever happens to the ConfigMaps and
// to the API server.
func TestTemplatesAndProfiles(t *testing.T) {
	w := newWorldIn(t, metav1.ObjectMeta{Name: "aibrix-system"})
	apply(t, deploy+"kubernetes/registry.yaml")
	const account = "system:serviceaccount:llm:tidefill"
	in := inNamespace(w.namespace)
	a, b := w.reader(account), w.reader(account)
	await := func(want string) {
		t.Helper()
		awaitAll(t, want, a, b)
	}
	await("") // there is no ConfigMap

	apply(t, "testdata/registry/configmaps.yaml")
	templates := "qwen3-32b@v1.0.0 deprecated, qwen3-32b@v1.1.0 active"
	await(templates + ", overnight 20000 default, trial 100")

	profiles := func(old, replacement string) {
		t.Helper()
		w.edit(in.Profiles, "profiles.yaml", old, replacement)
	}
	profiles("batch: 100}", "batch: 200}")
	await(templates + ", overnight 20000 default, trial 200")

	// A typo keeps the last good version of its item, and the other one follows.
	profiles("20000", "many")
	profiles("batch: 200}", "batch: 300}")
	const where = "configmap aibrix-system/aibrix-batch-profiles profiles.yaml"
	await(templates + ", overnight 20000 default, trial 300, " + where + ":7: profile overnight: " +
		"spec.quota.max_requests_per_batch: is \"many\", must be an integer")
	profiles("many", "30000")
	await(templates + ", overnight 30000 default, trial 300")
	profiles("default: overnight\nitems:\n", "")
	await(templates + ", overnight 30000 default, trial 300, " + where + ":1: must be a table " +
		"with the keys default and items")
	profiles("- name: overnight", "items:\n- name: overnight")
	await(templates + ", overnight 30000, trial 300")

	// Another API server on the same etcd continues where the first was.
	if err := plane.killAPIServer(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*reader{a, b} {
		until(t, func() string {
			if r.read() == nil {
				return "the API server is not missed"
			}
			return ""
		})
		if got := r.describe(); got != templates+", overnight 30000, trial 300" {
			t.Errorf("without API server: got %q", got)
		}
	}
	if err := plane.startAPIServer(); err != nil {
		t.Fatal(err)
	}
	profiles("batch: 300}", "batch: 400}")
	await(templates + ", overnight 30000, trial 400")

	api := plane.admin.CoreV1().ConfigMaps(w.namespace)
	if err := api.Delete(t.Context(), in.Templates, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("overnight 30000, trial 400")
	if _, err := api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "other"}, Data: map[string]string{"templates.yaml": "["}},
		metav1.CreateOptions{}); err != nil { // nobody reads it
		t.Fatal(err)
	}
	if err := api.Delete(t.Context(), in.Profiles, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("")
}

// Without a verb the error has exactly the rule that is missing; when it is added, the ConfigMaps
// are read.
func TestPermissionsOfTheRegistry(t *testing.T) {
	w := newWorld(t)
	in := inNamespace(w.namespace)
	roles := func() []rbacv1.Role {
		return kube.Roles("tidefill", "default", kube.DefaultConfig(), nil, configMapsOf(in))
	}
	for _, verb := range []string{"list", "watch"} {
		user := verb + "-" + w.namespace
		w.grant(user, without(roles(), w.namespace, 0, verb))
		r := w.reader(user)
		until(t, func() string {
			err := r.read()
			for _, name := range in.Names() {
				want := fmt.Sprintf("%s configmaps/%s in namespace %s: ", verb, name, w.namespace)
				rule := fmt.Sprintf("add to a Role in namespace %s that is bound to this user: "+
					`apiGroups [""], resources ["configmaps"], verbs [%q], resourceNames [%q]`,
					w.namespace, verb, name)
				if err == nil || !strings.Contains(err.Error(), want) ||
					!strings.Contains(err.Error(), rule) {
					return fmt.Sprintf("the error is %v, want one with %s and %s", err, want, rule)
				}
			}
			return ""
		})
		w.grant(user, roles())
		awaitAll(t, "", r)
	}
}

// A daemon starts though the API server is away, says so, and follows the ConfigMaps as soon as it
// is there.
func TestDaemonFollowsTheRegistry(t *testing.T) {
	w := newWorld(t)
	way := newProxy(t)
	way.setCut(true)
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Registry.Kubernetes = inNamespace(w.namespace)
	cfg.Kubernetes.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	user := "registry-" + w.namespace
	w.grant(user, kube.Roles("tidefill", "default", cfg.Kubernetes, nil,
		configMapsOf(cfg.Registry.Kubernetes)))
	if err := plane.kubeconfig(cfg.Kubernetes.Kubeconfig, way.address(), user,
		"default"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	d, _ := apptest.Start(t, cfg, app.Options{})
	if took := time.Since(began); took < 5*time.Second {
		t.Errorf("the start waited %v for the API server, want 5 s", took)
	}
	name := cfg.Registry.Kubernetes.Profiles
	source := fmt.Sprintf("registry: configmap %s/%s", w.namespace, name)
	awaitDegraded(t, d, source+": ")
	way.setCut(false)
	awaitDegraded(t, d, "")

	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string]string{"profiles.yaml": "items: 7"}}
	api := plane.admin.CoreV1().ConfigMaps(w.namespace)
	if _, err := api.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed := time.Now()
	awaitDegraded(t, d, source+" profiles.yaml:1: must be a list of profiles")
	took := time.Since(changed)
	t.Logf("a change was in force after %v", took.Round(time.Millisecond))
	if took > 2*time.Second && !testing.Short() {
		t.Errorf("a change was in force after %v, want at most 2 s", took)
	}
	way.setCut(true)
	awaitDegraded(t, d, source+": ", source+" profiles.yaml:1: ") // it is held
	way.setCut(false)
	err := api.Delete(t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	awaitDegraded(t, d, "")
}

// awaitDegraded waits until /readyz lists what begins with all of the texts; empty: it lists
// nothing of the registry.
func awaitDegraded(t *testing.T, d *app.App, texts ...string) {
	t.Helper()
	until(t, func() string {
		answer, err := http.Get(d.AdminURL() + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		var state struct{ Degraded []string }
		if err := json.NewDecoder(answer.Body).Decode(&state); err != nil {
			return err.Error()
		}
		listed := "\n" + strings.Join(state.Degraded, "\n")
		for _, text := range texts {
			if text == "" && strings.Contains(listed, "registry: ") ||
				!strings.Contains(listed, "\n"+text) {
				return fmt.Sprintf("degraded is %q, want %q", state.Degraded, texts)
			}
		}
		return ""
	})
}
