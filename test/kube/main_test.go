package kube_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// runsAPIServer is the environment variable by which this binary runs the API server, with the
// arguments of the command line, in place of the tests.
const runsAPIServer = "TIDEFILL_TEST_APISERVER"

// plane is the control plane of all tests.
var plane *controlPlane

// go test reuses a result only if a variable that a test has read is the same.
func TestOfTheseSources(*testing.T) { os.Getenv("TIDEFILL_SOURCES") }

func TestMain(m *testing.M) {
	if os.Getenv(runsAPIServer) != "" {
		command := app.NewAPIServerCommand()
		command.SetArgs(os.Args[1:])
		if err := command.Execute(); err != nil {
			os.Exit(1)
		}
		return
	}
	klog.SetLogger(logr.Discard()) // the controllers report every conflict
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tidefill-kube-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plane, err = startControlPlane(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer plane.stop()
	return m.Run()
}
