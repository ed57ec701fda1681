package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The page at the API's address has a user sign in, predict and submit a batch, follow it, fetch
// its results, and run its failed lines again. The key is not stored.
func TestUsersPage(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		wrong := strings.Contains(string(body), "wrong")
		if wrong {
			http.Error(w, `{"error":{"message":"no","code":"bad","type":"invalid_request_error"}}`,
				http.StatusBadRequest)
		}
		return wrong
	})
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Keys: "alice=secret-of-alice",
		Set: []string{"flowcontrol.policy=fixed"}})
	b := NewBrowser(t)
	b.Open(t, d.URL+"/")
	fill := func(id, value string) {
		b.Evaluate(t, fmt.Sprintf("document.getElementById(%q).value = %q", id, value))
	}
	click := func(selector string) {
		b.Evaluate(t, fmt.Sprintf("document.querySelector(%q).click()", selector))
	}
	choose := func(name, content string) {
		b.Evaluate(t, fmt.Sprintf("(() => { const t = new DataTransfer(); "+
			"t.items.add(new File([%q], %q)); "+
			"document.getElementById('file').files = t.files; })()", content, name))
	}
	const seconds = 20 * time.Second
	b.Await(t, seconds, "#state", "needs a key")
	fill("key", "wrong-key")
	click("#sign-in button")
	b.Await(t, seconds, "#sign-in-fault", "key")
	fill("key", "secret-of-alice€") // which no header can have
	click("#sign-in button")
	b.Await(t, seconds, "#sign-in-fault", "has a character that no key has")
	fill("key", "secret-of-alice")
	click("#sign-in button")
	b.Await(t, seconds, "#state", "live")
	b.Await(t, seconds, "#none", "You have no batches.")

	choose("broken.jsonl", "{\"custom_id\":\"a\"}\n")
	click("#preview")
	b.Await(t, seconds, "#answer", "The file has errors.", "line 1")
	lines := string(NewLines("right", "m", 3).Content) + string(NewLines("wrong", "m", 1).Content)
	choose("requests.jsonl", lines)
	click("#preview")
	b.Await(t, seconds, "#answer", "4 lines", "The deadline will be met")
	click("#submit button:last-of-type")
	b.Await(t, seconds, "#answer", "Submitted as batch_")
	b.Await(t, time.Minute, "#rows tr", "completed, with failures", "4 of 4, 1 failed",
		"1 × 400 bad", "Results", "Failed lines", "Retry failed", "9 in, 6 out")
	b.Evaluate(t, "(() => { URL.createObjectURL = (blob) => { blob.text().then((text) => "+
		"{ document.title = text.trim().split('\\n').length; }); return '#'; }; })()")
	click("#rows [aria-label^='Results']")
	await(t, seconds, "the results of three lines", func() bool {
		return b.Evaluate(t, "document.title") == "3"
	})
	click("#rows [aria-label^='Retry failed']")
	b.Await(t, time.Minute, "#rows tr", "1 of 1, 1 failed")
	if got := b.Evaluate(t, "document.querySelectorAll('#rows tr').length"); got != "2" {
		t.Errorf("%s batches are shown, want 2", got)
	}
	b.Await(t, time.Minute, "#used-rows tr", "m\t5\t9\t0\t6")
	for _, what := range []string{"localStorage.length", "sessionStorage.length",
		"document.cookie.length"} {
		if got := b.Evaluate(t, what); got != "0" {
			t.Errorf("%s is %s", what, got)
		}
	}
	checkAccess(t, b, "users")
	for _, fault := range b.Faults() {
		if !strings.Contains(fault, "401") {
			t.Errorf("the page reports %q", fault)
		}
	}
	// Programs get the API's answer at the same URL.
	response, err := http.Get(d.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != 401 ||
		!strings.HasPrefix(kind, "application/json") {
		t.Errorf("a program gets %d, %s", response.StatusCode, kind)
	}
}
