package deploy_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/test/deploy/chart"
)

// Every object is one that its API accepts, belongs to the release, and refers only to what exists.
func TestChart(t *testing.T) {
	eachFile(t, "testdata/values/*.yaml", func(t *testing.T, _, values string) {
		for _, r := range []chart.Release{installed, {Name: "night", Namespace: "batches"}} {
			checkAll(t, render(t, r, values))
		}
	})
}

// checkAll checks objects that are installed together.
func checkAll(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	ids := map[string]bool{}
	for _, o := range objects {
		id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if ids[id] {
			t.Errorf("%s exists twice", id)
		}
		ids[id] = true
		if err := conforms(t, o); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if o.GetNamespace() == "" && o.GetKind() != "Namespace" {
			t.Errorf("%s has no namespace", id)
		}
	}
	for _, o := range of(objects, "ConfigMap") {
		checkConfig(t, o.GetName(), nested(o, "data", "tidefill.yaml").(string))
	}
}

// checkConfig checks a configuration as tidefill check does.
func checkConfig(t *testing.T, name, text string) config.Config {
	t.Helper()
	cfg, err := config.Parse(name, []byte(text))
	if err != nil {
		t.Errorf("the daemon refuses\n%s\n%v", text, err)
	}
	return cfg
}

// nested returns a field of an object, or nil.
func nested(o *unstructured.Unstructured, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		return nil
	}
	return value
}

// Helm has nothing to say about the chart.
func TestHelmLintsTheChart(t *testing.T) {
	output, err := exec.Command("go", "tool", "helm", "lint", "--strict", "--quiet", chartDir,
		"-f", "testdata/values/everything.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// Faults of values are reported before anything is installed.
func TestChartRefuses(t *testing.T) {
	eachFile(t, "testdata/refused/*.yaml", func(t *testing.T, _, values string) {
		first, _, _ := strings.Cut(values, "\n")
		want := strings.TrimPrefix(first, "# want: ")
		if _, err := installed.Render(chartDir, values); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	})
}

// The pod mounts, names and serves what the configuration, the Services and the probes need.
func TestPodMatchesItsConfiguration(t *testing.T) {
	eachFile(t, "testdata/values/*.yaml", func(t *testing.T, _, values string) {
		objects := render(t, installed, values)
		set, cfg := podOf(t, objects)
		pod := set.Spec.Template.Spec
		container := pod.Containers[0]
		ports := map[string]int32{}
		for _, p := range container.Ports {
			ports[p.Name] = p.ContainerPort
		}
		want := map[string]int32{"api": 8080, "admin": 8081}
		if len(cfg.Pools) > 0 {
			want["scaler"] = 9090
		}
		if diff := cmp.Diff(want, ports); diff != "" {
			t.Errorf("ports: -want +got\n%s", diff)
		}
		if cfg.Listen != ":8080" || cfg.AdminListen != ":8081" ||
			len(cfg.Pools) > 0 && cfg.Scaler.Listen != ":9090" {
			t.Errorf("addresses are %s, %s, %s", cfg.Listen, cfg.AdminListen, cfg.Scaler.Listen)
		}
		for _, file := range []string{cfg.Auth.KeysFile, cfg.Data, cfg.TLS.CertFile,
			cfg.TLS.KeyFile, cfg.TLS.ClientCAFile, cfg.Scaler.TLS.CertFile,
			cfg.Scaler.TLS.KeyFile, cfg.Scaler.TLS.ClientCAFile, container.Args[2]} {
			if file != "" && !slices.ContainsFunc(container.VolumeMounts,
				func(m mount) bool { return within(file, m.MountPath) }) {
				t.Errorf("nothing is mounted at %s", file)
			}
		}
		if grace := *set.Spec.Template.Spec.TerminationGracePeriodSeconds; float64(grace) <=
			cfg.Shutdown.Drain.Seconds() {
			t.Errorf("the pod is killed after %d s, and drains for %v", grace, cfg.Shutdown.Drain)
		}
		for _, s := range of(objects, "Service") {
			target := nested(s, "spec", "ports").([]any)[0].(map[string]any)["targetPort"]
			if ports[target.(string)] == 0 {
				t.Errorf("Service %s: the pod has no port %s", s.GetName(), target)
			}
			for key, value := range nested(s, "spec", "selector").(map[string]any) {
				if set.Spec.Template.Labels[key] != value {
					t.Errorf("Service %s selects %s=%s", s.GetName(), key, value)
				}
			}
		}
		for _, s := range of(objects, "ScaledObject") {
			trigger := nested(s, "spec", "triggers").([]any)[0].(map[string]any)
			metadata := trigger["metadata"].(map[string]any)
			host, port, _ := strings.Cut(metadata["scalerAddress"].(string), ":")
			if host != "tidefill-scaler.llm.svc" || port != "9090" ||
				!slices.ContainsFunc(of(objects, "Service"),
					func(o *unstructured.Unstructured) bool {
						return o.GetName()+"."+o.GetNamespace()+".svc" == host
					}) {
				t.Errorf("no Service is at %v", metadata["scalerAddress"])
			}
		}
		if uses := *pod.AutomountServiceAccountToken; uses != slices.ContainsFunc(cfg.Pools,
			func(p config.Pool) bool { return !p.Kubernetes.IsZero() }) {
			t.Errorf("the token is mounted: %v", uses)
		}
		if pod.ServiceAccountName == "" || strings.Contains(values, "create: true") {
			t.Errorf("the service account is %q", pod.ServiceAccountName)
		}
	})
}

// The pod runs under the restricted Pod Security Standard.
func TestPodIsRestricted(t *testing.T) {
	set, _ := podOf(t, render(t, installed, read(t, "testdata/values/minimal.yaml")))
	pod, container := set.Spec.Template.Spec, set.Spec.Template.Spec.Containers[0]
	got, err := yaml.Marshal(map[string]any{"pod": pod.SecurityContext,
		"container": container.SecurityContext})
	if err != nil {
		t.Fatal(err)
	}
	want := `container:
  allowPrivilegeEscalation: false
  capabilities:
    drop:
    - ALL
  readOnlyRootFilesystem: true
pod:
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  runAsGroup: 65532
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile:
    type: RuntimeDefault
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The pod is replaced only if the daemon can't apply a change while it runs.
func TestPodIsReplacedWhereNeeded(t *testing.T) {
	annotation := func(values string) string {
		set, _ := podOf(t, render(t, installed, values))
		return set.Spec.Template.Annotations["tidefill/config"]
	}
	first := annotation(`config: {upstreams: [{url: "http://a"}]}`)
	if annotation(`config: {upstreams: [{url: "http://b"}]}`) != first {
		t.Error("other upstreams replace the pod")
	}
	if annotation(`config: {upstreams: [{url: "http://a"}], node: b}`) == first {
		t.Error("another node does not replace the pod")
	}
}
