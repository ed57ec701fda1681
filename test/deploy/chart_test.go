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
	cfg, err := config.Parse(name, []byte(withRootCert(t, text)))
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
	for _, name := range []string{"everything", "cluster", "separate"} {
		output, err := exec.Command("go", "tool", "helm", "lint", "--strict", "--quiet", chartDir,
			"-f", "testdata/values/"+name+".yaml").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}

// The commands of the notes name objects that exist.
func TestNotes(t *testing.T) {
	eachFile(t, "testdata/values/*.yaml", func(t *testing.T, _, values string) {
		files, err := installed.Render(chartDir, values)
		if err != nil {
			t.Fatal(err)
		}
		var known []string
		for _, o := range render(t, installed, values) {
			known = append(known, strings.ToLower(o.GetKind())+"/"+o.GetName())
		}
		i := slices.IndexFunc(files, func(f chart.File) bool { return f.Name == "NOTES.txt" })
		commands := 0
		for row := range strings.Lines(files[i].Text) {
			command, _, _ := strings.Cut(strings.TrimSpace(row), " |")
			words := strings.Fields(command)
			if len(words) == 0 || words[0] != "kubectl" {
				continue
			}
			commands++
			if fault := kubectlFault(words[1:], known); fault != "" {
				t.Errorf("%s: %s", command, fault)
			}
		}
		if commands < 2 {
			t.Errorf("the notes have %d commands:\n%s", commands, files[i].Text)
		}
	})
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

// Pods mount, name and serve what the configuration, the Services and the probes need.
func TestPodsMatchTheirConfiguration(t *testing.T) {
	eachFile(t, "testdata/values/*.yaml", func(t *testing.T, _, values string) {
		objects := render(t, installed, values)
		_, cfg := podOf(t, objects)
		all := workloads(t, objects)
		for _, w := range all {
			checkPod(t, w, cfg)
		}
		for _, s := range of(objects, "Service") {
			checkService(t, s, all)
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
	})
}

// checkPod compares a pod with the configuration.
func checkPod(t *testing.T, w workload, cfg config.Config) {
	t.Helper()
	pod := w.Template.Spec
	container := pod.Containers[0]
	cfg.Roles = w.Roles
	want := map[string]int32{"admin": 8081}
	if cfg.Has(config.RoleAPI) {
		want["api"] = 8080
	}
	if len(cfg.Pools) > 0 && cfg.Has(config.RoleScale) {
		want["scaler"] = 9090
	}
	if diff := cmp.Diff(want, ports(w)); diff != "" {
		t.Errorf("%s: ports: -want +got\n%s", w.Name, diff)
	}
	if cfg.Listen != ":8080" || cfg.AdminListen != ":8081" ||
		len(cfg.Pools) > 0 && cfg.Scaler.Listen != ":9090" {
		t.Errorf("addresses are %s, %s, %s", cfg.Listen, cfg.AdminListen, cfg.Scaler.Listen)
	}
	for _, file := range []string{cfg.Auth.KeysFile, cfg.Data, cfg.TLS.CertFile,
		cfg.TLS.KeyFile, cfg.TLS.ClientCAFile, cfg.Scaler.TLS.CertFile,
		cfg.Scaler.TLS.KeyFile, cfg.Scaler.TLS.ClientCAFile, container.Args[2]} {
		if file != "" && !mounted(w, file) {
			t.Errorf("%s: nothing is mounted at %s", w.Name, file)
		}
	}
	grace, end := *pod.TerminationGracePeriodSeconds, cfg.Shutdown.Delay+cfg.Shutdown.Drain
	if float64(grace) <= end.Seconds() {
		t.Errorf("%s is killed after %d s, and drains for %v", w.Name, grace, end)
	}
	if uses := *pod.AutomountServiceAccountToken; uses !=
		(cfg.Registry.Kubernetes.Enabled() || cfg.Registry.Kubernetes.UseCases ||
			cfg.Registry.Kubernetes.Pools || cfg.Has(config.RoleDispatch) &&
			slices.ContainsFunc(cfg.Pools,
				func(p config.PoolConfig) bool { return !p.Kubernetes.IsZero() })) {
		t.Errorf("%s: the token is mounted: %v", w.Name, uses)
	}
	if pod.ServiceAccountName == "" {
		t.Errorf("%s has no service account", w.Name)
	}
}

// checkService checks that a Service selects pods, and that each of them has its port.
func checkService(t *testing.T, s *unstructured.Unstructured, all []workload) {
	t.Helper()
	target := nested(s, "spec", "ports").([]any)[0].(map[string]any)["targetPort"].(string)
	selected := 0
	for _, w := range all {
		if !selects(nested(s, "spec", "selector").(map[string]any), w.Template.Labels) {
			continue
		}
		selected++
		if ports(w)[target] == 0 {
			t.Errorf("Service %s: %s has no port %s", s.GetName(), w.Name, target)
		}
	}
	if selected == 0 || target == "admin" && selected != len(all) {
		t.Errorf("Service %s selects %d of %d pods", s.GetName(), selected, len(all))
	}
}

// ports returns the ports of a container by their names.
func ports(w workload) map[string]int32 {
	all := map[string]int32{}
	for _, p := range w.Template.Spec.Containers[0].Ports {
		all[p.Name] = p.ContainerPort
	}
	return all
}

// selects reports whether a selector matches labels.
func selects(selector map[string]any, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// The pod runs under the restricted Pod Security Standard.
func TestPodIsRestricted(t *testing.T) {
	set, _ := podOf(t, render(t, installed, read(t, "testdata/values/minimal.yaml")))
	pod, container := set.Template.Spec, set.Template.Spec.Containers[0]
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
// Secrets that profiles name are where the daemon looks for them.
func TestSecretsOfProfilesAreMounted(t *testing.T) {
	set, cfg := podOf(t, render(t, installed, `
config: {upstreams: [{url: "http://a"}]}
registry: {secrets: [s3-results, tos-results]}
`))
	mounted := map[string]string{}
	for _, v := range set.Template.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		for _, m := range set.Template.Spec.Containers[0].VolumeMounts {
			if m.Name == v.Name && m.ReadOnly {
				mounted[v.Secret.SecretName] = m.MountPath
			}
		}
	}
	for _, name := range []string{"s3-results", "tos-results"} {
		if want := cfg.Registry.SecretsDir + "/" + name; mounted[name] != want ||
			cfg.Registry.SecretsDir == "" {
			t.Errorf("Secret %s is mounted at %q, want %q", name, mounted[name], want)
		}
	}
}

func TestPodIsReplacedWhereNeeded(t *testing.T) {
	annotation := func(values string) string {
		set, _ := podOf(t, render(t, installed, values))
		return set.Template.Annotations["tidefill/config"]
	}
	first := annotation(`config: {upstreams: [{url: "http://a"}]}`)
	if annotation(`config: {upstreams: [{url: "http://b"}]}`) != first {
		t.Error("other upstreams replace the pod")
	}
	if annotation(`config: {upstreams: [{url: "http://a"}], node: b}`) == first {
		t.Error("another node does not replace the pod")
	}
}
