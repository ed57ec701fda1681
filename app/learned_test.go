package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

// answerOf returns the status and the body of an answer.
func answerOf(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestForgetLearned(t *testing.T) {
	runner := apptest.StartRunner(t, func(c *emulator.Config) { c.Models = []string{"org/m"} })
	cfg := apptest.Config(t.TempDir(), runner)
	a, _ := apptest.Start(t, cfg, app.Options{})
	forget := func(pool string, header ...string) int {
		return send(t, http.MethodDelete, a.AdminURL()+"/admin/pools/"+pool+"/learned", "",
			header...)
	}
	awaitStatus(t, http.StatusNoContent, func() int { return forget("org%2Fm") })
	for pool, want := range map[string]int{"m": http.StatusNotFound, "%00": http.StatusNotFound,
		"org/m": http.StatusNotFound} {
		if status := forget(pool); status != want {
			t.Errorf("%s: status %d, want %d", pool, status, want)
		}
	}
	if status, body := answerOf(t, http.MethodDelete, a.AdminURL()+
		"/admin/pools/org%2Fn/learned"); status != http.StatusNotFound ||
		!strings.Contains(body, `Did you mean \"org/m\"`) {
		t.Errorf("an unknown pool: status %d, %s", status, body)
	}
	if status := forget("org%2Fm", "Origin", "https://elsewhere"); status != http.StatusForbidden {
		t.Errorf("from a page of another origin: status %d, want 403", status)
	}
}
