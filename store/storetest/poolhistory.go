package storetest

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// TestPoolHistory runs the suite for PoolHistory. It uses PoolHistory and Owners.
func TestPoolHistory(t *testing.T, open Open) {
	run(t, open, []test{
		{"hours of pools add up", poolHoursAddUp},
		{"a save counts once", poolHoursCountOnce},
		{"old hours of pools go", oldPoolHoursGo},
	})
}

// noon is the beginning of an hour.
var noon = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

func lateness(n float64) store.Lateness {
	return store.Lateness{Requests: n, Late: n / 2, Estimated: n - 0.25, Added: n / 8}
}

func poolHoursAddUp(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	wantEqual(t, "hours of a new store", len(got(m.PoolHours(ctx, "", time.Time{}))(t)), 0)
	first := store.PoolHour{Pool: "m,ü", Hour: noon, FirstTokens: lateness(8), Tokens: lateness(4),
		Allowed: 0.01, Lines: 3, LineTokens: 1 << 40}
	other := store.PoolHour{Pool: "\x00a", Hour: noon, Tokens: lateness(1)}
	must(t, m.AddPoolHours(ctx, o, 1, []store.PoolHour{first, other}, time.Time{}))
	second := store.PoolHour{Pool: "m,ü", Hour: noon, FirstTokens: lateness(16),
		Allowed: 0.006, Lines: 2, LineTokens: 5}
	later := store.PoolHour{Pool: "m,ü", Hour: noon.Add(time.Hour), Tokens: lateness(2)}
	must(t, m.AddPoolHours(ctx, o, 2, []store.PoolHour{later, second}, time.Time{}))
	sum := store.PoolHour{Pool: "m,ü", Hour: noon, FirstTokens: lateness(24), Tokens: lateness(4),
		Allowed: 0.006, Lines: 5, LineTokens: 1<<40 + 5}
	sum.FirstTokens.Estimated = 23.5
	wantEqual(t, "all hours", got(m.PoolHours(ctx, "", noon))(t),
		[]store.PoolHour{other, sum, later})
	wantEqual(t, "hours of a pool", got(m.PoolHours(ctx, "m,ü", noon))(t),
		[]store.PoolHour{sum, later})
	wantEqual(t, "hours since", got(m.PoolHours(ctx, "", noon.Add(time.Microsecond)))(t),
		[]store.PoolHour{later})

	// The next leader continues the hour.
	next := got(m.Register(ctx, "b", time.Minute))(t)
	must(t, m.AddPoolHours(ctx, next, 1, []store.PoolHour{{Pool: "m,ü",
		Hour: noon.Add(time.Hour), Tokens: lateness(2), Lines: 1}}, time.Time{}))
	hours := got(m.PoolHours(ctx, "m,ü", noon.Add(time.Hour)))(t)
	wantEqual(t, "requests of both leaders", hours[0].Tokens.Requests, 4.0)
	wantEqual(t, "lines of both leaders", hours[0].Lines, int64(1))

	c.advance(2 * time.Minute)
	err := m.AddPoolHours(ctx, next, 2, []store.PoolHour{later}, noon.Add(2*time.Hour))
	wantErr(t, "save with a lease that has ended", err, store.ErrFenced)
	wantEqual(t, "hours at last", len(got(m.PoolHours(ctx, "", time.Time{}))(t)), 3)
}

func poolHoursCountOnce(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	one := []store.PoolHour{{Pool: "p", Hour: noon, Lines: 1}}
	for _, number := range []int64{1, 1, 2, 2, 1, 5} {
		must(t, m.AddPoolHours(ctx, o, number, one, time.Time{}))
	}
	wantEqual(t, "lines", got(m.PoolHours(ctx, "p", noon))(t)[0].Lines, int64(3))
	again := got(m.Register(ctx, "a", time.Hour))(t) // a restart counts from 1
	must(t, m.AddPoolHours(ctx, again, 1, one, time.Time{}))
	wantEqual(t, "lines after a restart", got(m.PoolHours(ctx, "p", noon))(t)[0].Lines, int64(4))
}

func oldPoolHoursGo(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	must(t, m.AddPoolHours(ctx, o, 1, []store.PoolHour{{Pool: "gone", Hour: noon},
		{Pool: "p", Hour: noon.Add(time.Hour)}}, noon))
	wantEqual(t, "hours", len(got(m.PoolHours(ctx, "", time.Time{}))(t)), 2)
	must(t, m.AddPoolHours(ctx, o, 2, nil, noon.Add(time.Hour)))
	wantEqual(t, "hours that are left", got(m.PoolHours(ctx, "", time.Time{}))(t),
		[]store.PoolHour{{Pool: "p", Hour: noon.Add(time.Hour)}})
}
