package hangup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestMain is the main function of the processes that the test starts with a command.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == "serve" || os.Args[1] == "batch") {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			os.Exit(2)
		}
		select {
		case <-Signals():
			os.Exit(0)
		case <-time.After(10 * time.Second):
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

// The daemon catches the signal before its main function begins; other commands end.
func TestCaughtFromTheStartOn(t *testing.T) {
	Signals() // so that the processes below do not inherit that it is ignored, as under nohup
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(self, "serve").CombinedOutput(); err != nil {
		t.Errorf("serve ended with %v: %s", err, out)
	}
	err = exec.Command(self, "batch").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("another command ended with %v", err)
	}
	if status := exit.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGHUP {
		t.Errorf("another command ended with %v, not by the signal", err)
	}
}
