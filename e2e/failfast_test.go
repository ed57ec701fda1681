package e2e

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"
)

// fastFaults are the ways of an emulated runner to answer quickly and wrongly.
var fastFaults = []struct{ name, faults string }{
	{"500", `{"server_error":1}`},
	{"401", `{"unauthorized":1}`},
	{"403", `{"forbidden":1}`},
	{"login-page", `{"login_page":1}`},
	{"empty", `{"empty":1}`},
	{"wrong-json", `{"wrong_json":1}`},
	{"reset", `{"reset":1}`},
	{"mixture", `{"server_error":0.3,"unauthorized":0.2,"login_page":0.2,"empty":0.1,` +
		`"wrong_json":0.1,"reset":0.1}`},
	{"by-turns", `{"server_error":1,"period":"2s","bad":"1s"}`},
}

// maxFailed is the number of lines that a runner may fail before it is found out, beside a good
// one.
const maxFailed = 20

// A runner that answers quickly and wrongly takes hardly any lines from the good one beside it.
//
// All faults are tried at the same time, with a pool for each in one daemon. In the pool "alone" a
// good runner has the same lines and nobody beside it: it shows how long they take on this machine.
func TestFailFastRunnerBesideAGoodOne(t *testing.T) {
	t.Parallel()
	for _, policy := range []struct {
		name         string
		set          []string
		lines, of500 int // of each batch, and of that beside a runner that answers 500
	}{
		{"aimd", nil, sized(1000, 5000), inShort(1500, 5000)},
		// Objectives that the machine's own pauses do not touch: the emulators share two cores.
		{"headroom", []string{"flowcontrol.slo.ttft=1m", "flowcontrol.slo.tpot=5s"},
			sized(400, 5000), sized(400, 5000)},
	} {
		t.Run(policy.name, func(t *testing.T) {
			t.Parallel()
			if policy.name != "aimd" {
				long(t, "a second policy")
			}
			var upstreams []string
			emulate := func(model, faults string) (address string) {
				address = freeAddress(t)
				upstreams = append(upstreams, startRunner(t, address, "--profile", "llama-8b-a100",
					"--speedup", "5", "--output-median", "20", "--model", model,
					"--faults", cmp.Or(faults, "{}")))
				return address
			}
			pools := []*failFastPool{{model: "alone", lines: policy.of500,
				good: emulate("alone", "")}}
			for _, f := range fastFaults {
				p := &failFastPool{model: f.name, lines: policy.lines,
					good: emulate(f.name, ""), bad: []string{emulate(f.name, f.faults)}}
				if f.name == "500" {
					p.lines = policy.of500
				}
				pools = append(pools, p)
			}
			d := NewDaemon(t, Options{Upstreams: upstreams, Admin: freeAddress(t),
				Set: append(policy.set, "flowcontrol.policy="+policy.name)})
			c := d.Client()
			for _, p := range pools {
				p.batch = c.Submit(t, NewLines("l", p.model, p.lines).Content, "").ID
			}
			watch(t, d, pools)
			alone := pools[0].took
			for _, p := range pools {
				t.Logf("%s: %v", p.model, p)
				p.check(t, d, alone)
			}
		})
	}
}

// failFastPool is a batch on a pool of a good runner and a bad one.
type failFastPool struct {
	model, batch, good string
	bad                []string
	lines              int

	took                time.Duration
	failed              int     // lines
	onBad               int     // requests that the bad runners failed
	maxAllowed, maxUsed float64 // lines of the good runner
	seen, used          int     // samples, and those in which it had what it was allowed
}

func (p *failFastPool) String() string {
	return fmt.Sprintf("%d lines in %v, %d failed, %d requests failed by the bad runner; the good "+
		"one had %v in flight of %v, all it was allowed in %d of %d samples", p.lines,
		p.took.Round(10*time.Millisecond), p.failed, p.onBad, p.maxUsed, p.maxAllowed, p.used,
		p.seen)
}

// watch awaits the ends of all batches, and looks at the runners meanwhile.
func watch(t *testing.T, d *Daemon, pools []*failFastPool) {
	t.Helper()
	begin, limit := time.Now(), sized(50*time.Second, 5*time.Minute)
	c := d.Client()
	for left := len(pools); left > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(begin) > limit {
			for _, p := range pools {
				if b, err := c.Batch(p.batch); p.took == 0 {
					t.Errorf("%s: after %v the batch is %s, %+v, waiting %q, %v", p.model, limit,
						b.Status, b.RequestCounts, orZero(b.Tidefill.Waiting), err)
				}
			}
			t.FailNow()
		}
		page := metricsOf(t, d.Admin)
		for _, p := range pools {
			if p.took > 0 {
				continue
			}
			b, err := c.Batch(p.batch)
			if err != nil {
				t.Fatal(err)
			}
			if b.Ended() {
				p.took, p.failed = time.Since(begin), b.RequestCounts.Failed
				left--
				continue
			}
			if done := b.RequestCounts.Completed; done == 0 || done > p.lines*3/4 {
				continue // it starts, or has no lines to fill the runner any more
			}
			labels := fmt.Sprintf(`{pool=%q,runner=%q}`, p.model, p.good)
			allowed := seriesIn(page, "tidefill_runner_allowance_lines"+labels)
			used := seriesIn(page, "tidefill_runner_in_flight_lines"+labels)
			p.maxAllowed, p.maxUsed = max(p.maxAllowed, allowed), max(p.maxUsed, used)
			p.seen++
			if used >= allowed-1 {
				p.used++
			}
		}
	}
	page := metricsOf(t, d.Admin)
	for _, p := range pools {
		for _, outcome := range []string{"failed", "denied", "garbled", "refused", "died"} {
			for _, bad := range p.bad {
				p.onBad += int(seriesIn(page, fmt.Sprintf(
					`tidefill_requests_total{outcome=%q,runner=%q}`, outcome, bad)))
			}
		}
	}
}

// seriesIn returns the value of a series of a metrics page; 0: it does not exist.
func seriesIn(page, series string) (value float64) {
	for line := range strings.Lines(page) {
		if text, is := strings.CutPrefix(line, series+" "); is {
			fmt.Sscan(text, &value)
		}
	}
	return value
}

// check fails the test unless the good runner has worked as if it were alone.
func (p *failFastPool) check(t *testing.T, d *Daemon, alone time.Duration) {
	t.Helper()
	if p.failed > maxFailed {
		t.Errorf("%s: %d of %d lines failed, want %d at most", p.model, p.failed, p.lines,
			maxFailed)
	}
	if out, status := d.Run("verify", p.batch); status != 0 {
		t.Errorf("%s: verify: status %d\n%s", p.model, status, out)
	}
	if len(p.bad) == 0 {
		return
	}
	if most := p.lines/20 + p.maxFound(); p.onBad > most || p.onBad == 0 {
		t.Errorf("%s: the bad runner failed %d requests of %d lines, want 1 to %d", p.model,
			p.onBad, p.lines, most)
	}
	if p.seen >= 5 && (p.used < p.seen/2 || p.maxAllowed < 2) {
		t.Errorf("%s: the good runner had all lines that it was allowed in %d of %d samples, at "+
			"most %v of %v", p.model, p.used, p.seen, p.maxUsed, p.maxAllowed)
	}
	if most := 2*alone + 3*time.Second; p.took > most {
		t.Errorf("%s: %d lines took %v; beside nobody a good runner takes %v", p.model, p.lines,
			p.took, alone)
	}
}

// maxFound is the number of requests that may be in flight to a runner when it is found out.
func (p *failFastPool) maxFound() int {
	if p.model == "by-turns" {
		return 40 * int(1+p.took/(2*time.Second)) // in each period
	}
	if p.model == "404 error" {
		return p.lines // may be their own fault until the other runner has answered some
	}
	return 40 * len(p.bad)
}
