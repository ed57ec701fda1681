package deploy_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/store/cluster"
)

// Pods on the cluster store come and go without a moment without one, and share no volume.
func TestReplicas(t *testing.T) {
	for _, name := range []string{"cluster", "separate"} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, installed, read(t, "testdata/values/"+name+".yaml"))
			checkReplicas(t, objects)
		})
	}
}

func checkReplicas(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	all := workloads(t, objects)
	does := map[config.Role]bool{}
	for _, w := range all {
		for _, r := range w.Roles {
			does[r] = true
		}
		if w.Replicas < 2 || len(w.Claims) > 0 || w.Strategy == nil {
			t.Fatalf("%s has %d replicas and %d claims", w.Name, w.Replicas, len(w.Claims))
		}
		if u := w.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 ||
			u.MaxSurge.IntValue() != 1 {
			t.Errorf("%s is updated by %+v", w.Name, w.Strategy)
		}
		for i, other := range all {
			own := other.Name == w.Name
			if matches(t, w.Selector, all[i].Template.Labels) != own {
				t.Errorf("%s selects the pods of %s: %v", w.Name, other.Name, !own)
			}
		}
		checkSpread(t, w)
		for _, v := range w.Template.Spec.Volumes {
			if v.PersistentVolumeClaim != nil || v.Name == "data" && v.EmptyDir == nil {
				t.Errorf("%s has the volume %+v", w.Name, v)
			}
		}
	}
	for _, r := range config.AllRoles {
		if !does[r] {
			t.Errorf("nobody has the role %s", r)
		}
	}
	checkBudgets(t, objects, all)
}

// checkSpread checks that pods prefer to be apart from those of the same kind, and may be together.
func checkSpread(t *testing.T, w workload) {
	t.Helper()
	affinity := w.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil ||
		len(affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Fatalf("%s: the affinity is %+v", w.Name, affinity)
	}
	term := affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0]
	if key := term.PodAffinityTerm.TopologyKey; key != corev1.LabelHostname {
		t.Errorf("%s is apart by %s", w.Name, key)
	}
	spread := w.Template.Spec.TopologySpreadConstraints
	if len(spread) != 1 {
		t.Fatalf("%s has the constraints %+v", w.Name, spread)
	}
	for _, s := range []*metav1.LabelSelector{term.PodAffinityTerm.LabelSelector,
		spread[0].LabelSelector} {
		if !matches(t, s, w.Template.Labels) {
			t.Errorf("%s is apart from the pods %v", w.Name, s.MatchLabels)
		}
	}
}

// checkBudgets checks that each pod has one budget.
func checkBudgets(t *testing.T, objects []*unstructured.Unstructured, all []workload) {
	t.Helper()
	for _, w := range all {
		budgets := 0
		for _, o := range of(objects, "PodDisruptionBudget") {
			var b policyv1.PodDisruptionBudget
			typed(t, o, &b)
			if matches(t, b.Spec.Selector, w.Template.Labels) {
				budgets++
			}
		}
		if budgets != 1 {
			t.Errorf("%s has %d budgets", w.Name, budgets)
		}
	}
}

func matches(t *testing.T, s *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(of))
}

// Secrets of the servers are files, of which each pod has those that the configuration names.
func TestSecretsOfTheClusterAreFiles(t *testing.T) {
	eachFile(t, "testdata/values/*.yaml", func(t *testing.T, name, values string) {
		objects := render(t, installed, values)
		text := nested(of(objects, "ConfigMap")[0], "data", "tidefill.yaml").(string)
		named := []string{}
		for _, m := range rootCert.FindAllStringSubmatch(text, -1) {
			named = append(named, m[1])
		}
		_, cfg := podOf(t, objects)
		store := cfg.Store.Settings["cluster"].(cluster.Config)
		for _, file := range []string{store.Metadata.PasswordFile, store.Objects.AccessKeyFile,
			store.Objects.SecretKeyFile, store.Objects.CAFile, store.Live.PasswordFile,
			store.Live.CAFile} {
			if file != "" {
				named = append(named, file)
			}
		}
		if want := map[string]int{"cluster": 7}[name]; len(named) != want {
			t.Errorf("the configuration names %q, want %d files", named, want)
		}
		for _, w := range workloads(t, objects) {
			for _, file := range named {
				if !mounted(w, file) {
					t.Errorf("%s has no file %s", w.Name, file)
				}
			}
		}
		if u, err := url.Parse(store.Metadata.URL); err != nil || u.User.String() == "" &&
			name == "cluster" {
			t.Errorf("the address of PostgreSQL is %v (%v)", u, err)
		}
	})
}

// Each file has the value that its Secret has at the configured key.
func TestKeysOfSecrets(t *testing.T) {
	w, _ := podOf(t, render(t, installed, read(t, "testdata/values/cluster.yaml")))
	got := map[string]string{}
	for _, v := range w.Template.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			for _, item := range s.Secret.Items {
				got[item.Path] = s.Secret.Name + "/" + item.Key
			}
		}
	}
	want := map[string]string{
		"metadata-password": "db-app/password", "metadata-ca.crt": "db-ca/ca.crt",
		"objects-access-key": "bucket/ACCESS_KEY", "objects-secret-key": "bucket/SECRET_KEY",
		"objects-ca.crt": "minio-ca/ca.crt",
		"live-password":  "redis/redis-password", "live-ca.crt": "redis-ca/ca.crt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Pods need more memory on the cluster store, which can be set for both and for one kind of them.
func TestResources(t *testing.T) {
	const base = `{config: {upstreams: [{url: "http://a"}], store: {backend: cluster, cluster: ` +
		`{metadata: {url: "postgres://db/a"}, objects: {bucket: a}}}}, roles: separate, `
	for values, want := range map[string]string{
		`{config: {upstreams: [{url: "http://a"}]}}`:                           "512Mi",
		base + `dispatch: {}}`:                                                 "1Gi 1Gi",
		base + `resources: {limits: {memory: 2Gi}}}`:                           "2Gi 2Gi",
		base + `dispatch: {resources: {limits: {memory: 3Gi}}}}`:               "1Gi 3Gi",
		`{config: {upstreams: [{url: "http://a"}]}, resources: {limits: {}}}`:  "512Mi",
		base + `resources: {limits: {memory: 2Gi}, requests: {memory: 2Gi}}} `: "2Gi 2Gi",
	} {
		var got []string
		for _, w := range workloads(t, render(t, installed, values)) {
			r := w.Template.Spec.Containers[0].Resources
			got = append(got, r.Limits.Memory().String())
			if r.Requests.Cpu().String() != "1" {
				t.Errorf("%s: %s requests %v", values, w.Name, r.Requests)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: limits are %s, want %s", values, got, want)
		}
	}
}
