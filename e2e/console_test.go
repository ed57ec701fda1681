package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// markup is a name of a model that becomes markup where it is not shown as text.
const markup = `<img src=x onerror="document.title='owned'">/"&amp;'`

// reversed is a name of a model that reverses the text after it, where it is not isolated.
const reversed = "a\u202edesrever"

// The console shows a pool, why it starts no more lines, and a batch until its end, in a browser.
// It shows names as they are, asks no other server, and reports a daemon that is gone.
func TestConsole(t *testing.T) {
	t.Parallel()
	runner := startRunner(t, freeAddress(t), "--model", markup, "--model", reversed, "--profile",
		"llama-70b-a100",
		"--speedup", "20", "--output-median", "40")
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{runner}, Set: with(
		"flowcontrol.policy=headroom", "flowcontrol.slo.tpot=100ms",
		"flowcontrol.slo.ttft=3s")})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	batch := d.Client().Submit(t, NewLines("console", markup, 60).Content, "")
	b.Await(t, time.Minute, "#batch-rows tr", batch.ID, markup, "in progress", "of 60")
	b.Await(t, time.Minute, ".pool", markup, "headroom", "100ms per token", "growing",
		"metrics,")
	d.Client().AwaitEnd(t, batch.ID, time.Minute)
	b.Await(t, time.Minute, "#batch-rows tr", batch.ID, "completed", "60 of 60 (100 %)", "ended")
	b.Await(t, time.Minute, ".runners tbody tr", strings.TrimPrefix(runner, "http://"), " ms")

	// The emulator counts first tokens of the lines, so both latencies have a history, with their
	// objectives, in the same kind of chart. Its legend says the values in words.
	b.Await(t, time.Minute, ".chart.token figcaption", "mean of runners", "objective 100")
	b.Await(t, time.Minute, ".chart.first figcaption", "95 % of requests within",
		"objective 3000")
	b.Await(t, time.Minute, ".runners tbody td[data-label='First tokens']", " ms")
	b.Await(t, time.Minute, ".figures", "batch lines included", "objective 3000 ms")
	for _, latency := range []string{"token", "first"} {
		for _, path := range []string{"users", "objective"} {
			expression := fmt.Sprintf("document.querySelector('.chart.%s path.%s')"+
				".getAttribute('d').startsWith('M')", latency, path)
			if got := b.Evaluate(t, expression); got != "true" {
				t.Errorf("the chart %s has no path %s", latency, path)
			}
		}
		label := b.Evaluate(t, fmt.Sprintf(
			"document.querySelector('.chart.%s svg[role=img]').getAttribute('aria-label')",
			latency))
		if !strings.HasPrefix(label, "Time ") {
			t.Errorf("the chart %s is labelled %q", latency, label)
		}
	}
	if got := b.Evaluate(t, "[...document.querySelectorAll('.runners tbody tr')].every((row) => "+
		"['Time per token', 'First tokens'].every((name) => row.querySelector("+
		"`td[data-label='${name}'] path.users`).getAttribute('d').startsWith('M')))"); got !=
		"true" {
		t.Error("a runner lacks the history of a latency")
	}

	for what, expression := range map[string]string{
		"the title":  "document.title",
		"the markup": "document.querySelectorAll('img[src=x]').length",
		"a chart": "[...document.querySelectorAll('.chart path.users')].some((p) => " +
			"p.getAttribute('d').startsWith('M'))",
		"a band": "document.querySelectorAll('.reasons .band rect').length > 0",
		"a width": "document.documentElement.scrollWidth <= " +
			"document.documentElement.clientWidth",
	} {
		want := map[string]string{"the title": "Tidefill", "the markup": "0"}[what]
		if want == "" {
			want = "true"
		}
		if got := b.Evaluate(t, expression); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	// Names stand from left to right in the order of the list, whatever is in them.
	if got := b.Evaluate(t, "(() => { const [first, second] = ["+
		"...document.querySelectorAll('.pool h2 bdi')].map((name) => "+
		"name.getBoundingClientRect()); return first.right < second.left; })()"); got != "true" {
		t.Errorf("the models stand in another order than in the list: %s", got)
	}
	for _, names := range []string{"#batch-rows th bdi", ".runners th bdi"} {
		if got := b.Evaluate(t, fmt.Sprintf("document.querySelectorAll('%s').length > 0",
			names)); got != "true" {
			t.Errorf("no names at %s are isolated", names)
		}
	}
	b.Resize(t, 360, 780)
	if got := b.Evaluate(t, "document.documentElement.scrollWidth"); got != "360" {
		t.Errorf("on a phone of 360 pixels the page is %s wide", got)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
	for _, url := range b.Requests() {
		if !strings.HasPrefix(url, "http://"+admin+"/") {
			t.Errorf("the page requested %s", url)
		}
	}

	d.Kill()
	b.Await(t, time.Minute, "#notices", "has not answered since")
	if state := b.Evaluate(t, "document.getElementById('state').innerText"); state !=
		"not reachable" {
		t.Errorf("the state is %q", state)
	}
	d.Start()
	d.AwaitReady()
	b.Await(t, time.Minute, "#state", "live")
}

// Charts connect decisions however far apart the daemon keeps them, and leave a gap where it was
// away.
func TestConsoleChartsHaveGaps(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	NewDaemon(t, Options{Admin: admin, Upstreams: []string{"http://" + freeAddress(t)}})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	for times, want := range map[string]string{
		"[0, 10, 20, 21, 22]":        "1",
		"[0, 350, 700, 701, 702]":    "1",
		"[0, 1, 2, 300, 301]":        "2",
		"[0, 300, 301]":              "2",
		"[0, 100, 200, 1200, 1300]":  "2",
		"[0, 10, 20, 120, 121, 122]": "2",
	} {
		b.Evaluate(t, fmt.Sprintf("import('/console/chart.js').then(({ Spark }) => { "+
			"const spark = new Spark([{ class: 'users' }]); "+
			"spark.update([%s.map((time) => [time, 1])], 0, 2000); "+
			"document.title = %q + (spark.paths[0].getAttribute('d').split('M').length - 1); })",
			times, times+": "))
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			got := b.Evaluate(t, "document.title")
			if got == times+": "+want {
				break
			}
			if time.Now().After(deadline) || strings.HasPrefix(got, times) {
				t.Errorf("%s: %q, want %s pieces", times, got, want)
				break
			}
		}
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// The list of batches shows which of them will meet their deadlines, and when they will have ended.
func TestConsoleShowsVerdicts(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	runner := startRunner(t, freeAddress(t), "--profile", "instant", "--model", "other")
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{runner}, Set: with(
		"pools=[{name: night, models: [m], role: batch, max: 1}]")})
	met := d.Client().Submit(t, NewLines("met", "m", 20).Content, "")
	missed := d.Client().Submit(t, NewLines("missed", "m", 20).Content,
		`{"deadline":"1m"}`) // a start takes longer
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	const first, second = "#batch-rows tr:nth-child(1)", "#batch-rows tr:nth-child(2)"
	b.Await(t, time.Minute, first, missed.ID, "after the deadline")
	b.Await(t, time.Minute, first+" .due [data-kind=harm]", "infeasible")
	b.Await(t, time.Minute, second, met.ID)
	b.Await(t, time.Minute, second+" .due [data-kind=flow]", "ok")
	b.Await(t, time.Minute, second+" td:last-child", "in ")
	b.Await(t, time.Minute, "#scaling-rows", "a deadline would be missed") // a long sentence
	b.Resize(t, 360, 780)
	if got := b.Evaluate(t, "document.documentElement.scrollWidth"); got != "360" {
		t.Errorf("on a phone of 360 pixels the page is %s wide", got)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// A daemon whose runner is gone says so, and which source gives no reading.
func TestConsoleNamesWhatIsDegraded(t *testing.T) {
	t.Parallel()
	stub := startRunner(t, freeAddress(t), "--profile", "instant", "--model", "m")
	admin := freeAddress(t)
	gone := "http://" + freeAddress(t)
	NewDaemon(t, Options{Admin: admin, Upstreams: []string{stub, gone}, Set: with(
		"flowcontrol.policy=headroom", "telemetry.every=100ms")})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	b.Await(t, time.Minute, "#notices", fmt.Sprintf("metrics of %s: away",
		strings.TrimPrefix(gone, "http://")), "check the URL")
	b.Await(t, time.Minute, "#no-batches", "No batch has been submitted")
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}
