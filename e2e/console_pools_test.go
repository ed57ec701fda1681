package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Ten pools have a row each, which leads to its details, also on a phone.
func TestConsoleShowsTenPools(t *testing.T) {
	t.Parallel()
	const pools = 10
	admin := freeAddress(t)
	var upstreams []string
	for i := range pools {
		upstreams = append(upstreams, NewStub(t, fmt.Sprint("org/model-", i)).URL)
	}
	upstreams = append(upstreams, "http://"+freeAddress(t)) // which is away
	NewDaemon(t, Options{Admin: admin, Upstreams: upstreams, Set: with(
		"flowcontrol.policy=aimd")})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	awaitValue(t, b, "document.querySelectorAll('#overview-rows tr').length", fmt.Sprint(pools))
	row := b.Await(t, time.Minute, "#overview-rows tr", "org/model-0", "idle", "nothing to do")
	if !strings.Contains(row, "0 / ") {
		t.Errorf("the row is %q", row)
	}
	if got := b.Evaluate(t, "document.querySelectorAll('.pool').length"); got != "0" {
		t.Errorf("%s pools are shown with details before one is selected", got)
	}
	b.Evaluate(t, "document.querySelector('#overview summary').click()")
	b.Await(t, time.Minute, "#overview .meanings", "nothing to do", "No line waits.")
	b.Evaluate(t, "document.querySelector('#overview summary').click()")
	b.Evaluate(t, "document.querySelector('#overview-rows tr:nth-child(3) a').click()")
	b.Await(t, time.Minute, ".pool h2", "org/model-2")
	awaitValue(t, b, "document.querySelectorAll('.pool').length", "1")
	awaitValue(t, b, "document.activeElement.innerText", "org/model-2")
	if got := b.Evaluate(t, "document.querySelector('[aria-current=true]').innerText"); got !=
		"org/model-2" {
		t.Errorf("the current pool is %s", got)
	}
	b.Open(t, "http://"+admin+"/console#pool/org%2Fmodel-4")
	b.Await(t, time.Minute, ".pool h2", "org/model-4")
	b.Resize(t, 390, 780)
	if got := b.Evaluate(t, "document.documentElement.scrollWidth"); got != "390" {
		t.Errorf("on a phone of 390 pixels the page is %s wide", got)
	}
	if got := b.Evaluate(t, "document.getElementById('overview').offsetHeight < 2 * 780"); got !=
		"true" {
		t.Error("ten pools are longer than two phones")
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}
