package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// TestLearned runs the suite for LearnedStates. It uses LearnedStates and Owners.
func TestLearned(t *testing.T, open Open) {
	run(t, open, []test{
		{"learned states are kept with their age", learnedIsKept},
		{"learned states are few", learnedIsBounded},
	})
}

func learnedIsKept(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	learned := func() []store.LearnedState { return got(m.Learned(ctx))(t) }
	wantEqual(t, "states of a new store", len(learned()), 0)
	data := []byte("\x00{\"a\":1}\xff")
	first := store.LearnedState{Pool: "m,ü", Kind: "x", Data: data}
	must(t, m.SaveLearned(ctx, o, []store.LearnedState{first,
		{Pool: "m,ü", Kind: "y", Data: []byte{}}}))
	c.advance(time.Minute)
	must(t, m.SaveLearned(ctx, o, []store.LearnedState{
		{Pool: "m,ü", Kind: "y", Data: []byte("2")}, {Pool: "a", Kind: "x", Data: data}}))
	c.advance(time.Second)
	first.Age = time.Minute + time.Second
	want := []store.LearnedState{{Pool: "a", Kind: "x", Data: data, Age: time.Second}, first,
		{Pool: "m,ü", Kind: "y", Data: []byte("2"), Age: time.Second}}
	wantEqual(t, "states", learned(), want)
	must(t, m.SaveLearned(ctx, o, nil))
	wantEqual(t, "after nothing was saved", learned(), want)

	wantEqual(t, "forgotten", got(m.ForgetLearned(ctx, "m,ü"))(t), 2)
	wantEqual(t, "forgotten again", got(m.ForgetLearned(ctx, "m,ü"))(t), 0)
	wantEqual(t, "states left", learned(), want[:1])

	if err := m.SaveLearned(ctx, o, []store.LearnedState{{Pool: "b", Kind: "x",
		Data: make([]byte, store.MaxLearnedBytes+1)}}); err == nil {
		t.Error("a state that is too long was saved")
	}
	must(t, m.SaveLearned(ctx, o, []store.LearnedState{{Pool: "b", Kind: "x",
		Data: bytes.Repeat([]byte("x"), store.MaxLearnedBytes)}}))
	newer := got(m.Register(ctx, "a", time.Minute))(t)
	err := m.SaveLearned(ctx, o, []store.LearnedState{{Pool: "c", Kind: "x", Data: data}})
	wantErr(t, "save when superseded", err, store.ErrFenced)
	c.advance(time.Hour)
	err = m.SaveLearned(ctx, newer, []store.LearnedState{{Pool: "c", Kind: "x", Data: data}})
	wantErr(t, "save with a lease that has ended", err, store.ErrFenced)
	wantEqual(t, "states at last", len(learned()), 2)
}

func learnedIsBounded(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", 1000*time.Hour))(t)
	save := func(pool string) {
		t.Helper()
		must(t, m.SaveLearned(ctx, o, []store.LearnedState{{Pool: pool, Kind: "x",
			Data: []byte("1")}}))
		c.advance(time.Second)
	}
	save("first")
	save("second")
	var many []store.LearnedState
	for i := range store.MaxLearned - 2 {
		many = append(many, store.LearnedState{Pool: fmt.Sprint("p", i), Kind: "x",
			Data: []byte("1")})
	}
	must(t, m.SaveLearned(ctx, o, many))
	c.advance(time.Second)
	save("first") // is younger now
	save("last")
	left := map[string]bool{}
	for _, state := range got(m.Learned(ctx))(t) {
		left[state.Pool] = true
	}
	if len(left) != store.MaxLearned || !left["first"] || left["second"] || !left["last"] {
		t.Errorf("%d states left, first %v, second %v, last %v; want the %d youngest", len(left),
			left["first"], left["second"], left["last"], store.MaxLearned)
	}
}
