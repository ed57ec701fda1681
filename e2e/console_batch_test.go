package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// newHalfStub returns a stub that refuses every line whose number is odd, and answers others when
// gate is closed.
func newHalfStub(t testing.TB, model string, gate <-chan struct{}) *Stub {
	s := NewStub(t, model)
	s.Intercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		_, number, _ := bytes.Cut(body, []byte(`"top_k":`))
		if digit := number[bytes.IndexByte(number, '.')-1]; digit%2 == 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"too odd","type":"bad","code":"odd"}}`)
			return true
		}
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		return false
	})
	return s
}

// A batch has a page of its own, by a link. It shows what has happened, and its user's key lets it
// show samples, results and change the batch, as the API would. Without the key it does neither.
func TestConsoleShowsOneBatch(t *testing.T) {
	t.Parallel()
	gate, admin := make(chan struct{}), freeAddress(t)
	stub := newHalfStub(t, "m", gate)
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{stub.URL}, Set: with(
		"flowcontrol.policy=aimd"),
		Keys: "own=" + ownKey + ",foreign=" + foreignKey})
	c := d.Client()
	batch := c.Submit(t, NewLines("one", "m", 40).Content, "")
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console#batch/"+batch.ID)
	b.Await(t, time.Minute, "#batch h2", batch.ID)
	b.Await(t, time.Minute, "#batch table:nth-of-type(1)", "completed", "failed", "in flight")
	b.Await(t, time.Minute, "#batch table:nth-of-type(2)", "400 odd", "with a key")
	b.Await(t, time.Minute, "#batch table:nth-of-type(5)", "one-", "failed: 400")
	if got := b.Evaluate(t, visible("#batch div.actions > button")); got != "" {
		t.Errorf("without a key the page offers %s", got)
	}

	enterKey(t, b, foreignKey)
	b.Await(t, time.Minute, "#batch .message", "Only a key with the role admin")
	enterKey(t, b, ownKey)
	b.Await(t, time.Minute, "#batch table:nth-of-type(2)", "400 odd", "too odd")
	click(t, b, "Pause")
	b.Await(t, time.Minute, "#batch .head", "paused")
	b.Await(t, time.Minute, "#batch table:nth-of-type(4)", "created", "paused", "sha256:")
	click(t, b, "Resume")
	b.Await(t, time.Minute, "#batch .head", "in progress")
	b.Evaluate(t, "document.getElementById('priority').value = 7")
	b.Evaluate(t, "document.querySelector('#priority + button').click()")
	b.Await(t, time.Minute, "#batch table:nth-of-type(4)", "given the priority 7")
	close(gate)
	b.Await(t, time.Minute, "#batch .head", "completed, with failures")
	b.Await(t, time.Minute, "#batch .figures", "40 of 40", "20 failed", "after ")
	b.Await(t, time.Minute, "#batch table:nth-of-type(4)", "resumed", "completed")
	b.Await(t, time.Minute, "#batch .actions", "Download results", "Download errors")
	click(t, b, "Retry failed lines")
	b.Await(t, time.Minute, "dialog[open]", "error file")
	b.Evaluate(t, "document.querySelector('dialog[open] button').click()")
	link := "#batch .message a"
	b.Await(t, time.Minute, link, "batch_")
	b.Evaluate(t, fmt.Sprintf("document.querySelector(%q).click()", link))
	b.Await(t, time.Minute, "#batch .muted", "own", "retry of "+batch.ID)
	b.Await(t, time.Minute, "#batch .head", "completed, with failures")
	for what, expression := range map[string]string{
		"a heading is skipped": "[...document.querySelectorAll('h1,h2,h3')].filter((e) => " +
			"e.checkVisibility()).map((e) => e.tagName) != 'H1,H2'",
		"a prompt or an answer": "/digest|assistant|role/.test(document.body.innerText)",
	} {
		if got := b.Evaluate(t, expression); got != "false" {
			t.Errorf("the page has %s", what)
		}
	}
	b.Resize(t, 390, 780)
	if got := b.Evaluate(t, "document.documentElement.scrollWidth"); got != "390" {
		t.Errorf("on a phone of 390 pixels the page is %s wide", got)
	}
	b.Evaluate(t, "document.querySelector('#batch a[href=\"#\"]').click()")
	b.Await(t, time.Minute, "#batches", batch.ID)
	for _, fault := range b.Faults() { // Chromium reports the key that was refused
		if !strings.Contains(fault, "403") {
			t.Errorf("the page reports %s", fault)
		}
	}
}

// Whoever reaches the console may read and change batches by their keys only, and no page of
// another site may.
func TestConsoleAsksForTheKeysOfTheAPI(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{NewStub(t, "m").URL},
		Keys: "own=" + ownKey + ",foreign=" + foreignKey})
	batch := d.Client().Submit(t, NewLines("keys", "m", 3).Content, "")
	ended := d.Client().AwaitEnd(t, batch.ID, time.Minute)
	at := &Client{URL: "http://" + admin + "/console/api", HTTP: http.DefaultClient}
	for _, request := range []string{"GET /v1/batches/" + batch.ID,
		"GET /v1/files/" + *ended.OutputFileID + "/content",
		"POST /v1/batches/" + batch.ID + "/pause", "POST /v1/batches/" + batch.ID + "/cancel",
		"POST /v1/batches/" + batch.ID + "/retry"} {
		method, path, _ := strings.Cut(request, " ")
		for key, want := range map[string]int{"": 401, "wrong": 401, foreignKey: 404} {
			at.Key = key
			answer, err := at.Do(method, path, "", nil)
			if err != nil || answer.Status != want {
				t.Errorf("%s with the key %q: status %d, %v, want %d", request, key,
					answer.Status, err, want)
			}
		}
		at.Key = ownKey
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"}} {
			answer, err := at.Do(method, path, "", nil, header...)
			if err != nil || answer.Status != http.StatusForbidden {
				t.Errorf("%s from another site: status %d, %v", request, answer.Status, err)
			}
		}
	}
	answer, err := at.Do("GET", "/v1/files/"+*ended.OutputFileID+"/content", "", nil)
	if err != nil || answer.Status != http.StatusOK || bytes.Count(answer.Body, []byte("\n")) != 3 {
		t.Errorf("the results: status %d, %v", answer.Status, err)
	}
	for _, path := range []string{"/v1/files", "/v1/batches", "/v1/models"} {
		if answer, err := at.Do("GET", path, "", nil); err != nil || answer.Status != 404 {
			t.Errorf("%s: status %d, %v", path, answer.Status, err)
		}
	}
}

// visible is an expression for the texts of the visible elements that match a selector.
func visible(selector string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%q)].filter((e) => e.checkVisibility())"+
		".map((e) => e.innerText).join()", selector)
}

func enterKey(t testing.TB, b *Browser, key string) {
	t.Helper()
	b.Await(t, time.Minute, "#batch form", "API key")
	b.Evaluate(t, fmt.Sprintf("(() => { document.getElementById('key').value = %q; "+
		"document.querySelector('#batch form button').click(); })()", key))
}

// click awaits a button by its text, and clicks it.
func click(t testing.TB, b *Browser, text string) {
	t.Helper()
	b.Await(t, time.Minute, "#batch .actions", text)
	b.Evaluate(t, fmt.Sprintf("[...document.querySelectorAll('#batch .actions > button')]"+
		".find((e) => e.innerText === %q).click()", text))
}

// Batches of all tenants are found by what is asked for, also those that ended long ago.
func TestConsoleFindsBatches(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{NewStub(t, "m").URL},
		Keys: "own=" + ownKey + ",foreign=" + foreignKey})
	own, foreign := d.Client(), d.Client()
	foreign.Key = foreignKey
	var last Batch
	for i := range 52 {
		last = own.Submit(t, NewLines(fmt.Sprint("find-", i), "m", 1).Content, "")
	}
	other := foreign.Submit(t, NewLines("other", "m", 1).Content, "")
	own.AwaitEnd(t, last.ID, time.Minute)
	foreign.AwaitEnd(t, other.ID, time.Minute)
	d.Kill() // it forgets which ones ended
	d.Start()
	d.AwaitReady()
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	b.Await(t, time.Minute, "#no-batches", "No batch")
	ask := func(name, value string) {
		t.Helper()
		b.Evaluate(t, fmt.Sprintf("(() => { const field = document.querySelector("+
			"'#find [name=%s]'); field.value = %q; "+
			"field.dispatchEvent(new Event('input', { bubbles: true })); })()", name, value))
	}
	rows := func(want int) {
		t.Helper()
		awaitValue(t, b, "document.querySelectorAll('#batch-rows tr').length", fmt.Sprint(want))
	}
	ask("status", "completed,failed,expired,cancelled")
	rows(50)
	b.Await(t, time.Minute, "#batch-rows tr td.tenant", "foreign")
	b.Await(t, time.Minute, "#batch-table thead", "Tenant")
	b.Evaluate(t, "document.getElementById('older').click()")
	rows(3)
	b.Evaluate(t, "document.getElementById('newer').click()")
	rows(50)
	ask("tenant", "foreign")
	rows(1)
	b.Await(t, time.Minute, "#batch-rows tr", other.ID, "completed")
	reopened := NewBrowser(t)
	reopened.Open(t, b.Evaluate(t, "location.href"))
	reopened.Await(t, time.Minute, "#batch-rows tr", other.ID, "completed")
	awaitValue(t, reopened, "document.querySelectorAll('#batch-rows tr').length", "1")
	ask("tenant", "")
	ask("id", last.ID[:len(last.ID)-3])
	rows(1)
	ask("id", "")
	ask("metadata", "run=1")
	b.Await(t, time.Minute, "#no-batches", "None of the batches is like this")
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// awaitValue waits until an expression has a value.
func awaitValue(t testing.TB, b *Browser, expression, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if got = b.Evaluate(t, expression); got == want {
			return
		}
	}
	t.Fatalf("%s: %s, want %s; faults: %q", expression, got, want, b.Faults())
}
