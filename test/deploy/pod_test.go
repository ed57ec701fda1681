package deploy_test

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidefill/tidefill/config"
)

// workload is a StatefulSet or a Deployment of the daemon.
type workload struct {
	Name     string
	Replicas int32
	Selector *metav1.LabelSelector
	Template corev1.PodTemplateSpec
	Roles    []config.Role
	// Strategy is that of a Deployment. Claims are those of a StatefulSet.
	Strategy *appsv1.DeploymentStrategy
	Claims   []corev1.PersistentVolumeClaim
}

// workloads returns what makes the pods of the daemon.
func workloads(t *testing.T, objects []*unstructured.Unstructured) (all []workload) {
	t.Helper()
	for _, o := range of(objects, "StatefulSet") {
		var s appsv1.StatefulSet
		typed(t, o, &s)
		all = append(all, workload{Name: s.Name, Replicas: *s.Spec.Replicas,
			Selector: s.Spec.Selector, Template: s.Spec.Template,
			Claims: s.Spec.VolumeClaimTemplates})
	}
	for _, o := range of(objects, "Deployment") {
		var d appsv1.Deployment
		typed(t, o, &d)
		if d.Labels["app.kubernetes.io/name"] == "tidefill" {
			all = append(all, workload{Name: d.Name, Replicas: *d.Spec.Replicas,
				Selector: d.Spec.Selector, Template: d.Spec.Template,
				Strategy: &d.Spec.Strategy})
		}
	}
	for i := range all {
		all[i].Roles = config.AllRoles
		args := all[i].Template.Spec.Containers[0].Args
		if at := slices.Index(args, "--roles"); at >= 0 {
			all[i].Roles = nil
			for role := range strings.SplitSeq(args[at+1], ",") {
				all[i].Roles = append(all[i].Roles, config.Role(role))
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("nothing makes pods of the daemon")
	}
	return all
}

// podOf returns what makes the daemon's pods that send lines, and their configuration.
func podOf(t *testing.T, objects []*unstructured.Unstructured) (workload, config.Config) {
	t.Helper()
	text := nested(of(objects, "ConfigMap")[0], "data", "tidefill.yaml").(string)
	all := workloads(t, objects)
	return all[len(all)-1], checkConfig(t, "tidefill.yaml", text)
}

// mounted reports whether the container of a pod has a file.
func mounted(w workload, file string) bool {
	pod := w.Template.Spec
	for _, m := range pod.Containers[0].VolumeMounts {
		if !within(file, m.MountPath) {
			continue
		}
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || pod.Volumes[i].Projected == nil {
			return i >= 0 || slices.ContainsFunc(w.Claims,
				func(c corev1.PersistentVolumeClaim) bool { return c.Name == m.Name })
		}
		for _, source := range pod.Volumes[i].Projected.Sources {
			for _, item := range source.Secret.Items {
				if filepath.Join(m.MountPath, item.Path) == file {
					return true
				}
			}
		}
	}
	return false
}

var rootCert = regexp.MustCompile(`sslrootcert=([^&\s"]+)`)

// withRootCert returns a configuration whose sslrootcert is a file that exists here: the daemon
// reads it to check the address of PostgreSQL.
func withRootCert(t *testing.T, text string) string {
	t.Helper()
	if !rootCert.MatchString(text) {
		return text
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return rootCert.ReplaceAllString(text, "sslrootcert="+file)
}

// typed converts an object into its type.
func typed(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
	if err != nil {
		t.Fatal(err)
	}
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool { return strings.HasPrefix(path+"/", dir+"/") }
