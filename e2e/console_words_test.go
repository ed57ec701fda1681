package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The list of batches says why a batch failed before any line ran. What a line holds is left out.
func TestConsoleSaysWhyBatchesFailed(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{NewStub(t, "m").URL}})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	for _, test := range []struct {
		content string
		want    []string
	}{
		{string(NewLines("unserved", "other", 2).Content), []string{
			"model not found in line 1: ", "other"}},
		{"\n", []string{"empty file: The file has no requests"}},
		{"{\"custom_id\": \"secret\n{\n", []string{"invalid JSON in line 1 (and 1 more)"}},
	} {
		batch := d.Client().Submit(t, []byte(test.content), "")
		b.Await(t, time.Minute, "#batch-rows tr", append(test.want, batch.ID, "failed")...)
	}
	if got := b.Evaluate(t, "document.body.innerText.includes('secret')"); got != "false" {
		t.Error("the page shows what a line holds")
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// Lines that a cancelled batch did not run are no failed ones.
func TestConsoleCountsLinesThatDidNotRun(t *testing.T) {
	t.Parallel()
	gate, admin := make(chan struct{}), freeAddress(t)
	stub := newHalfStub(t, "m", gate) // which refuses each second line, and answers no other
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{stub.URL}, Set: with(
		"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=16")})
	c := d.Client()
	batch := c.Submit(t, NewLines("stopped", "m", 10).Content, "")
	c.Await(t, batch.ID, time.Minute, func(b Batch) bool { return b.RequestCounts.Failed == 5 })
	if answer, err := c.Do("POST", "/v1/batches/"+batch.ID+"/cancel", "", nil); err != nil ||
		answer.Status != 200 {
		t.Fatalf("cancel the batch: status %d, %v", answer.Status, err)
	}
	ended := c.AwaitEnd(t, batch.ID, time.Minute)
	if ended.RequestCounts.Failed != 10 { // as OpenAI counts
		t.Errorf("%d lines failed, want 10", ended.RequestCounts.Failed)
	}
	const want = "5 failed, 5 not run"
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	b.Await(t, time.Minute, "#batch-rows tr", "cancelled", "5 of 10 (50 %), "+want)
	if got := b.Evaluate(t, "document.querySelector('#batch-rows .failed').style.width"); got !=
		"50%" {
		t.Errorf("the part of failed lines is %s wide", got)
	}
	b.Open(t, "http://"+admin+"/console#batch/"+batch.ID)
	b.Await(t, time.Minute, "#batch .figures", "5 of 10", want)
	b.Await(t, time.Minute, "#batch table", "failed\t5\t50.0 %", "not run\t5\t50.0 %")
	b.Open(t, d.URL+"/")
	b.Await(t, time.Minute, "#rows tr", "cancelled", "5 of 10, "+want, "Retry failed")
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// Reasons, warnings and states are words, with the code in the tooltip. What reasons mean is there
// without a mouse. A figure that is unknown is written small.
func TestConsoleSpeaksInWords(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	NewDaemon(t, Options{Admin: admin, Upstreams: []string{NewStub(t, "m").URL}, Set: with(
		"flowcontrol.policy=headroom", "telemetry.every=100ms")})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	notice := b.Await(t, time.Minute, "#notices li", "metrics of ", ": page missing for ")
	if title := b.Evaluate(t, "document.querySelector('#notices li').title"); title != "no_page" ||
		strings.Contains(notice, "no_page") {
		t.Errorf("the notice is %q, with the title %q", notice, title)
	}
	b.Await(t, time.Minute, ".pool .meanings", "What these reasons mean")
	b.Evaluate(t, "document.querySelector('.pool .meanings summary').focus()")
	if err := chromedp.Do(b.Context, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	awaitValue(t, b, "document.querySelector('.pool .meanings dd').checkVisibility()", "true")
	b.Await(t, time.Minute, ".pool .meanings", "No line waits.", "All reasons, and what to do")
	if size := b.Evaluate(t, "[...document.querySelectorAll('.figures div')].find((tile) => "+
		"tile.innerText.includes('Late requests')).querySelector('.number').computedStyleMap()."+
		"get('font-size').value"); size != "13" {
		t.Errorf("an unknown figure has the size %s, want 13", size)
	}
	b.Evaluate(t, "Promise.all([import('/console/pool.js'), fetch('admin/pools').then((answer) "+
		"=> answer.json())]).then(([{ PoolView }, { data: [pool] }]) => { pool.warnings = "+
		"[{ code: 'implausible_objective', text: 'why' }]; const view = new PoolView(); "+
		"view.update(pool); const { textContent, title } = view.element.querySelector('.notice');"+
		" document.title = textContent + ' ' + title; })")
	awaitValue(t, b, "document.title", "implausible objective: why implausible_objective")
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// On a screen addresses are not broken, and the end of a batch takes two rows at most. On a phone
// nothing is wider than the page.
func TestConsoleFitsScreens(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	runner := startRunner(t, freeAddress(t), "--profile", "llama-70b-a100", "--speedup", "20",
		"--interactive-rps", "1", "--model", "m")
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{runner}, Set: with(
		"flowcontrol.policy=headroom", "flowcontrol.slo.tpot=100ms", "flowcontrol.slo.ttft=3s")})
	c := d.Client()
	c.Submit(t, NewLines("waits", "m", 5000).Content, "")
	failed := c.Submit(t, NewLines("failed", "other", 1).Content, "")
	c.AwaitEnd(t, failed.ID, time.Minute)
	b := NewBrowser(t)
	rows := func(selector string) string { // the greatest number of rows of an element
		return fmt.Sprintf("Math.max(...[...document.querySelectorAll(%q)].map((e) => "+
			"new Set([...e.getClientRects()].map((r) => r.top)).size))", selector)
	}
	for _, page := range []struct{ url, shown, ends string }{
		{"http://" + admin + "/console", "#batch-rows tr:nth-child(2)",
			"td[data-label=Finish] span"},
		{d.URL + "/", "#rows tr:nth-child(2)", "td[data-label=End] span"},
	} {
		b.Open(t, page.url)
		b.Resize(t, 1440, 900)
		b.Await(t, time.Minute, page.shown, "batch_")
		if page.url != d.URL+"/" {
			b.Await(t, time.Minute, ".runners th bdi", "127.0.0.1:")
			b.Await(t, time.Minute, "#batch-table thead", "Finish")
			b.Await(t, time.Minute, "#batch-rows tr:nth-child(1)", "predicted in ")
			b.Await(t, time.Minute, page.shown+" td:last-child", "ended ")
			if got := b.Evaluate(t, rows(".runners th bdi")); got != "1" {
				t.Errorf("the address of a runner takes %s rows", got)
			}
		}
		if got := b.Evaluate(t, rows(page.ends)); got != "1" && got != "2" {
			t.Errorf("%s: the end of a batch takes %s rows", page.url, got)
		}
		for _, width := range []int64{1440, 390} {
			b.Resize(t, width, 900)
			if got := b.Evaluate(t, "document.documentElement.scrollWidth"); got !=
				fmt.Sprint(width) {
				t.Errorf("%s at %d pixels is %s wide", page.url, width, got)
			}
		}
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}
