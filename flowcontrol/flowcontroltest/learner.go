package flowcontroltest

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// lived is the time that pools run before what was learned of them is handed over.
const lived = 6 * time.Minute

// testLearner checks the contract of flowcontrol.Learner, for controllers that implement it.
func testLearner(
	t *testing.T, limits Limits, needs flowcontrol.Needs, build func() flowcontrol.Controller,
) {
	if _, learns := build().(flowcontrol.Learner); !learns {
		return
	}
	before := NewLivePool(build())
	most := 0
	before.Run(lived-30*time.Second, nil)
	before.Run(30*time.Second, func() { most = max(most, before.InFlight()) })
	learned := before.Controller.(flowcontrol.Learner).Learned(before.Now)

	t.Run("nothing is learned before a runner has joined", func(t *testing.T) {
		if got := build().(flowcontrol.Learner).Learned(Noon); got != nil {
			t.Errorf("got %s", got)
		}
	})

	t.Run("what was learned is taken over", func(t *testing.T) {
		if len(learned) == 0 || len(learned) > flowcontrol.MaxLearned {
			t.Fatalf("%d bytes, want 1 to %d", len(learned), flowcontrol.MaxLearned)
		}
		after := NewLivePool(restored(t, build, learned, 0))
		after.Run(30*time.Second, func() {
			if after.InFlight() > most {
				t.Fatalf("%d lines %v after the start, %d before", after.InFlight(),
					after.Now.Sub(Noon), most)
			}
		})
		after.Run(time.Minute, nil)
		before.Run(90*time.Second, nil)
		got, want := after.InFlight(), before.InFlight()
		if got < want*3/4-1 || got > want*5/4+1 {
			t.Errorf("%d lines after a minute and a half, %d without the restart", got, want)
		}
	})

	t.Run("what is old counts less", func(t *testing.T) {
		// Before a pool that nothing is known of may have its first lines, which takes 20 s: then
		// what is seen counts, and no state.
		soon := func(c flowcontrol.Controller) int {
			p := NewLivePool(c)
			p.Run(19*time.Second, nil)
			return p.InFlight()
		}
		last, fresh := soon(restored(t, build, learned, 0)), soon(build())
		for _, age := range []time.Duration{10 * time.Minute, time.Hour, 24 * time.Hour,
			30 * 24 * time.Hour, 1<<63 - 1} {
			lines := soon(restored(t, build, learned, age))
			if lines > last+1 {
				t.Errorf("%d lines with a state of %v ago, %d with a younger one", lines, age, last)
			}
			last = lines
		}
		if last > fresh+1 {
			t.Errorf("%d lines with a very old state, %d with none", last, fresh)
		}
	})

	t.Run("handing over changes nothing", func(t *testing.T) {
		one, other := newRun(t, limits, needs, build(), 1), newRun(t, limits, needs, build(), 1)
		for range 500 {
			one.step()
			one.controller.(flowcontrol.Learner).Learned(one.now)
			other.step()
			if !reflect.DeepEqual(one.last, other.last) {
				t.Fatalf("got %+v, without it %+v", one.last, other.last)
			}
		}
	})

	t.Run("damaged states are refused or harmless", func(t *testing.T) {
		for seed, text := range damaged(learned) {
			CheckLearned(t, limits, needs, build, text, uint64(seed))
		}
	})
}

// restored returns a controller that has taken over what was learned.
func restored(
	t *testing.T, build func() flowcontrol.Controller, learned []byte, age time.Duration,
) flowcontrol.Controller {
	t.Helper()
	c := build()
	if err := c.(flowcontrol.Learner).Learn(Noon, learned, age); err != nil {
		t.Fatalf("learn: %v", err)
	}
	return c
}

// CheckLearned checks that a controller keeps the contract after Learn with any text, and that it
// is as new if Learn returns an error.
func CheckLearned(
	t *testing.T, limits Limits, needs flowcontrol.Needs, build func() flowcontrol.Controller,
	text []byte, seed uint64,
) {
	t.Helper()
	c := build()
	err := c.(flowcontrol.Learner).Learn(Noon, text, time.Duration(seed)*time.Second)
	r := newRun(t, limits, needs, c, seed)
	fresh := newRun(t, limits, needs, build(), seed)
	for range 100 {
		r.step()
		if err == nil {
			continue
		}
		if fresh.step(); !reflect.DeepEqual(r.last, fresh.last) {
			t.Fatalf("refused (%v), but it grants %+v and a new controller %+v", err, r.last,
				fresh.last)
		}
	}
	live := NewLivePool(c)
	live.Now = r.now
	live.Run(10*time.Second, func() {
		for _, g := range live.Allowance(live.Now).Runners {
			if g.Lines < 0 || g.Lines > limits.PerRunner {
				t.Fatalf("%+v with learned %q", g, text)
			}
		}
	})
}

var figure = regexp.MustCompile(`-?[0-9][0-9.e+-]*`)

// damaged returns variants of a text: cut, overwritten, and with other figures.
func damaged(text []byte) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	all := [][]byte{nil, {}, []byte("null"), []byte("{}"), []byte("[]"), []byte(`"x"`)}
	for range 10 {
		all = append(all, text[:random.IntN(len(text))])
		flipped := bytes.Clone(text)
		flipped[random.IntN(len(flipped))] ^= 1 << random.IntN(8)
		all = append(all, flipped)
	}
	for _, other := range []string{"0", "-1", "1e308", "-1e308", "1e999", "1e12", "1e-300", "0.5",
		"null"} {
		for range 4 {
			all = append(all, figure.ReplaceAllFunc(text, func(was []byte) []byte {
				if len(was) == 1 || random.IntN(10) > 0 { // the version is one digit
					return was
				}
				return []byte(other)
			}))
		}
	}
	return all
}
