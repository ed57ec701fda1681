package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/tidefill/tidefill/internal/testservers"
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
	process := testservers.Program{Path: Binary(t),
		Args: append([]string{"runner", "emulate", "--listen", address}, args...),
	}.Run(t, func(context.Context) error {
		response, err := http.Get("http://" + address + "/v1/models")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	return "http://" + address, func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	}
}
