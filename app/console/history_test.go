package console_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/store"
)

type historyList struct {
	Since int64
	Step  string
	Data  []struct {
		Pool, Summary string
		Total         historyRow
		Rows          []historyRow
	}
}

type historyRow struct {
	Time, Requests, Lines int64
	First                 lateShares `json:"first_tokens"`
	Each                  lateShares `json:"tokens"`
	Points                *float64
	Allowed               *float64 `json:"allowed_points"`
	BatchTokens           int64    `json:"batch_tokens"`
}

type lateShares struct {
	Requests int64
	Late     *float64
	Without  *float64 `json:"late_without"`
}

// withHistory returns what a console shows that has pools of these names and this history.
func withHistory(hours []store.PoolHour, names ...string) console.Deps {
	deps := newDeps(names...)
	deps.History = func(_ context.Context, pool string, since time.Time) ([]store.PoolHour, error) {
		return slices.DeleteFunc(slices.Clone(hours), func(h store.PoolHour) bool {
			return h.Hour.Before(since) || pool != "" && h.Pool != pool
		}), nil
	}
	return deps
}

// judged returns a number of requests, all of which were judged.
func judged(requests, late, added float64) store.Lateness {
	return store.Lateness{Requests: requests, Late: late, Estimated: requests, Added: added}
}

func wantNumber(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-6 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestHistoryAddsUpByHourAndByDay(t *testing.T) {
	hour := began.UTC().Truncate(time.Hour) // 08:00
	ago := func(hours int, h store.PoolHour) store.PoolHour {
		h.Pool, h.Hour = "chat", hour.Add(-time.Duration(hours)*time.Hour)
		return h
	}
	deps := withHistory([]store.PoolHour{
		ago(200, store.PoolHour{Lines: 1e9}),
		ago(30, store.PoolHour{FirstTokens: judged(1000, 20, 5), Tokens: judged(900, 9, 1),
			Allowed: 0.006, Lines: 2, LineTokens: 2_000_000}),
		ago(29, store.PoolHour{FirstTokens: judged(3000, 20, 3), Tokens: judged(2700, 9, 3),
			Allowed: 0.01, Lines: 3, LineTokens: 10_400_000}),
		ago(0, store.PoolHour{Lines: 1}),
	}, "chat", "other")

	got := decode[historyList](t, serve(t, deps, "/admin/history?since=7d&pool=chat"))
	if got.Step != "day" || len(got.Data) != 1 || len(got.Data[0].Rows) != 2 {
		t.Fatalf("seven days are %+v, want two rows of days", got)
	}
	day := got.Data[0].Rows[0]
	if day.Time != hour.Add(-30*time.Hour).Truncate(24*time.Hour).Unix() || day.Requests != 4000 ||
		day.Each.Requests != 3600 || day.Lines != 5 || day.BatchTokens != 12_400_000 {
		t.Errorf("the first day is %+v", day)
	}
	wantNumber(t, "late first tokens", day.First.Late, 0.01)
	wantNumber(t, "late first tokens without lines", day.First.Without, 0.008)
	wantNumber(t, "late answers", day.Each.Late, 0.005)
	wantNumber(t, "late answers without lines", day.Each.Without, 14.0/3600)
	wantNumber(t, "points", day.Points, 0.3)
	if today := got.Data[0].Rows[1]; today.Points != nil || today.First.Late != nil {
		t.Errorf("shares of no requests: %+v, want none", today)
	}
	wantNumber(t, "points in all", got.Data[0].Total.Points, 0.3)
	const want = "In the last 7 days users of pool chat had 0.3 points more late answers beside " +
		"lines; lines took 12.4 M tokens." // nothing is promised now
	if got.Data[0].Summary != want {
		t.Errorf("got  %s\nwant %s", got.Data[0].Summary, want)
	}

	got = decode[historyList](t, serve(t, deps, "/admin/history?since=30h10m&pool=chat"))
	if got.Step != "hour" || len(got.Data[0].Rows) != 3 || got.Since != hour.Unix()-31*3600 {
		t.Errorf("30 hours are %+v, want three rows of hours", got)
	}
	got = decode[historyList](t, serve(t, deps, "/admin/history?since=7d&step=hour"))
	if len(got.Data) != 2 || len(got.Data[0].Rows) != 3 || got.Data[1].Pool != "other" ||
		got.Data[1].Summary != "In the last 7 days nothing was recorded of pool other." {
		t.Errorf("all pools by hour are %+v", got)
	}
}

// A share that nobody knows is not shown as 0.
func TestHistorySaysWhatIsUnknown(t *testing.T) {
	hour := began.UTC().Truncate(time.Hour)
	for _, test := range []struct {
		row  store.PoolHour
		want string
	}{
		{store.PoolHour{FirstTokens: judged(1000, 10, 8), Allowed: 0.006, LineTokens: 950},
			"users of pool m had 0.8 points more late answers beside lines, of 0.6 allowed; " +
				"lines took 950 tokens."},
		{store.PoolHour{FirstTokens: store.Lateness{Requests: 100, Late: 8, Estimated: 40}},
			"it is unknown how many more answers were late beside lines to users of pool m: its " +
				"policy does not estimate that; lines took 0 tokens."},
		{store.PoolHour{Lines: 7, LineTokens: 7000},
			"no request of users of pool m was held against an objective; lines took 7.0 k " +
				"tokens."},
	} {
		test.row.Pool, test.row.Hour = "m", hour
		deps := withHistory([]store.PoolHour{test.row}, "m")
		got := decode[historyList](t, serve(t, deps, "/admin/history")).Data[0]
		if want := "In the last 24 hours " + test.want; got.Summary != want {
			t.Errorf("got  %s\nwant %s", got.Summary, want)
		}
		if known := got.Rows[0].Points != nil; known != strings.Contains(test.want, "points") {
			t.Errorf("%+v: the points are known: %t", test.row, known)
		}
	}
}

func TestBadQueriesOfTheHistoryNameTheRemedy(t *testing.T) {
	deps := withHistory([]store.PoolHour{{Pool: "gone", Hour: began.Add(-time.Hour)}}, "chat")
	for query, want := range map[string]struct {
		status int
		texts  []string
	}{
		"since=week":             {400, []string{"since", "24h, 7d or 30d", "week"}},
		"since=91d":              {400, []string{"since", "at most 90 days"}},
		"since=-1d":              {400, []string{"since"}},
		"since=0s":               {400, []string{"since"}},
		"step=week":              {400, []string{"step", "hour or day"}},
		"since=%zz":              {400, []string{"can't be read"}},
		"pool=cat":               {404, []string{`Did you mean \"chat\"`}},
		"since=90d&pool=gone":    {200, []string{"gone"}},
		"since=&step=&pool=&x=y": {200, []string{"chat", "gone"}},
	} {
		w := serve(t, deps, "/admin/history?"+query)
		for _, text := range want.texts {
			if w.Code != want.status || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: status %d, %s; want %d with %q", query, w.Code, w.Body, want.status,
					text)
			}
		}
	}
}
