package kube_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gatewayAPI is the module with the definitions of Gateway API, and the sum of its files.
const (
	gatewayAPI    = "sigs.k8s.io/gateway-api@v1.2.1"
	gatewayAPISum = "h1:fZZ/+RyRb+Y5tGkwxFKuYuSRQHu9dZtbjenblleOLHM="
)

// The manifests of the inline path are valid by Gateway API's definitions and by our own.
func TestInlineExample(t *testing.T) {
	dir := filepath.Join(module(t, gatewayAPI, gatewayAPISum), "config/crd/standard")
	for _, name := range []string{"gateways", "httproutes"} {
		apply(t, filepath.Join(dir, "gateway.networking.k8s.io_"+name+".yaml"))
	}
	apply(t, definitions+"usecasesets.tidefill.dev.yaml")
	apply(t, definitions+"pools.tidefill.dev.yaml")
	w := newWorld(t)
	for _, name := range []string{"gateway.yaml", "usecases.yaml"} {
		applyIn(t, deploy+"examples/inline/"+name, w.namespace)
	}
	// The route leads to a port that the Service has.
	service, err := plane.admin.CoreV1().Services(w.namespace).Get(t.Context(), "tidefill-inline",
		metav1.GetOptions{})
	if err != nil || service.Spec.Ports[0].TargetPort.String() != "api" {
		t.Errorf("service %+v, %v", service, err)
	}
	text, err := os.ReadFile(deploy + "kubernetes/tidefill.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: api,", "name: admin,"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no container has a port with %s", want)
		}
	}
}

// module returns the directory of a module's files, whose sum must be the given one. The module is
// not built, only its files are used, so go.mod does not name it.
func module(t *testing.T, name, sum string) (dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
	cmd.Dir = t.TempDir()
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	var answer struct{ Dir, Sum, Error string }
	if json.Unmarshal(out, &answer) != nil || err != nil || answer.Error != "" {
		t.Fatalf("go mod download %s: %v %s", name, err, answer.Error)
	}
	if answer.Sum != sum {
		t.Fatalf("%s has the sum %s, want %s", name, answer.Sum, sum)
	}
	return answer.Dir
}
