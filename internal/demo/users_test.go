package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner/emulator"
)

func TestUsersAreCompared(t *testing.T) {
	const ms = time.Millisecond
	u := users{promise: flowcontrol.SLO{TTFT: 180 * ms, TPOT: 50 * ms}}
	served := func(f *felt, first, token time.Duration) {
		f.add(emulator.Served{FirstToken: first, PerToken: token})
	}
	var out strings.Builder
	now := time.Unix(0, 0)
	served(&u.with, time.Hour, time.Hour) // before the batch runs
	u.report(&out, now)
	if out.Len() > 0 {
		t.Errorf("reported before lines ran: %s", out.String())
	}
	served(&u.with, 200*ms, 20*ms)
	served(&u.with, 100*ms, 28*ms)
	served(&u.with, 150*ms, 0) // an answer of one token
	served(&u.without, 120*ms, 20*ms)
	u.report(&out, now.Add(reportInterval-1))
	if out.Len() > 0 {
		t.Errorf("reported too early: %s", out.String())
	}
	u.report(&out, now.Add(reportInterval))
	want := "  interactive users: a token each 24.0 ms, 20.0 ms without batch work (+20 %); " +
		"first token 150 ms, 120 ms (+25 %)\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	served(&u.without, 120*ms, 60*ms) // late
	out.Reset()
	u.printTable(&out)
	want = `What 3 interactive requests felt meanwhile, and what they feel at the same time on equal runners without batch work:

                         with batch work   without     difference
        time per token           24.0 ms   40.0 ms          -40 %
           first token            150 ms    120 ms          +25 %
   later than promised            33.3 %    50.0 %   -16.7 points

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUsersOfAShortBatch(t *testing.T) {
	var u users
	var out strings.Builder
	u.report(&out, time.Unix(0, 0))
	u.with.add(emulator.Served{FirstToken: 1})
	u.printTable(&out)
	if got := out.String(); !strings.HasPrefix(got, "It was too short") {
		t.Errorf("got %q", got)
	}
}
