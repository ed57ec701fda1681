package e2e

import (
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startRunner runs an emulated runner until the test ends and returns its URL.
func startRunner(t testing.TB, address string, args ...string) string {
	t.Helper()
	url, _ := startMortalRunner(t, address, args...)
	return url
}

// startMortalRunner runs an emulated runner until the test ends or kill is called.
func startMortalRunner(
	t testing.TB, address string, args ...string,
) (url string, kill func()) {
	t.Helper()
	var log logBuffer
	cmd := exec.Command(Binary(t), append([]string{"runner", "emulate", "--listen", address},
		args...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(kill)
	url = "http://" + address
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(
		10 * time.Millisecond) {
		if response, err := http.Get(url + "/v1/models"); err == nil {
			response.Body.Close()
			return url, kill
		}
	}
	t.Fatalf("the emulated runner does not answer\n%s", log.tail())
	return "", kill
}
