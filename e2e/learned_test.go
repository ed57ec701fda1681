package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A daemon that is killed while it protects users continues with what it has learned: its lines
// return, and never exceed what they were. Without that state it watches the pool again.
func TestRestartKeepsWhatWasLearned(t *testing.T) {
	long(t, "it judges times, and runs alone")
	runner := startRunner(t, freeAddress(t), "--profile", "llama-8b-a100", "--model", "org/m",
		"--interactive-rps", "3")
	d := NewDaemon(t, Options{Upstreams: []string{runner}, Admin: freeAddress(t), Set: []string{
		"flowcontrol.policy=headroom", "flowcontrol.slo.ttft=2s", "flowcontrol.slo.tpot=50ms",
		"dispatch.tuning.learned_every=1s",
	}})
	inFlight := func() int {
		return int(gauge(t, d.Admin, fmt.Sprintf(
			`tidefill_runner_in_flight_lines{pool="org/m",runner=%q}`,
			strings.TrimPrefix(runner, "http://"))))
	}
	// most returns the most lines in flight over a time.
	most := func(over time.Duration) (most int) {
		for end := time.Now().Add(over); time.Now().Before(end); {
			most = max(most, inFlight())
			time.Sleep(100 * time.Millisecond)
		}
		return most
	}
	c := d.Client()
	b := c.Submit(t, NewLines("learned", "org/m", 20_000).Content, "")
	await(t, 120*time.Second, "twenty lines in flight", func() bool { return inFlight() >= 20 })
	before := most(12 * time.Second)
	restart := func() (log string, restarted time.Time) {
		earlier := len(d.Log())
		d.Restart()
		restarted = time.Now()
		await(t, 10*time.Second, "leadership", func() bool {
			return strings.Contains(d.Log()[earlier:], "leading: this process")
		})
		return d.Log()[earlier:], restarted
	}
	const continues = `msg="flow control continues with what was learned of the pool"`

	_, restarted := restart()
	await(t, 20*time.Second, "lines after the restart", func() bool { return inFlight() > 0 })
	t.Logf("%d lines before; the first again after %v", before, time.Since(restarted))
	await(t, 10*time.Second, "a log of what was taken over", func() bool {
		log := d.Log()
		i := strings.LastIndex(log, continues)
		return i >= 0 && strings.Contains(log[i:], "pool=org/m age=")
	})
	after := most(time.Until(restarted.Add(30 * time.Second)))
	t.Logf("%d lines within half a minute", after)
	if after > before || after < before/3 {
		t.Errorf("%d lines after the restart, %d before", after, before)
	}

	request, err := http.NewRequest(http.MethodDelete,
		"http://"+d.Admin+"/admin/pools/"+url.PathEscape("org/m")+"/learned", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Fatalf("forget: %v, %v", answer, err)
	}
	answer.Body.Close()
	log, _ := restart()
	if n := most(8 * time.Second); n > 0 {
		t.Errorf("%d lines in a pool that was forgotten, within the time that it is watched", n)
	}
	if strings.Contains(log, continues) {
		t.Errorf("it was not forgotten:\n%s", log)
	}
	if _, err := c.Do(http.MethodPost, "/v1/batches/"+b.ID+"/cancel", "", nil); err != nil {
		t.Error(err)
	}
}
