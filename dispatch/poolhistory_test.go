package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler/flows"
	"github.com/tidefill/tidefill/store"
)

// hourStore adds up what is saved, each number once.
type hourStore struct {
	last  int64
	lines map[string]int64 // by pool and hour
	late  map[string]float64
	calls int
	fail  error // after the save was made

	usedLast, used int64
	failUsed       error // after the save was made
}

func (s *hourStore) AddPoolHours(
	_ context.Context, _ store.Owner, number int64, hours []store.PoolHour, _ time.Time,
) error {
	s.calls++
	if number > s.last {
		for _, h := range hours {
			key := h.Pool + " " + h.Hour.Format("15h")
			s.lines[key] += h.Lines
			s.late[key] += h.Tokens.Late
		}
		s.last = number
	}
	return s.fail
}

// AddUsage implements [PoolHistory].
func (s *hourStore) AddUsage(
	_ context.Context, _ store.Owner, number int64, used []store.Used, _ time.Time,
) error {
	if number > s.usedLast {
		for _, u := range used {
			s.used += u.Requests
		}
		s.usedLast = number
	}
	return s.failUsed
}

// historian drives a poolHistory by a clock.
type historian struct {
	*poolHistory
	saved *hourStore
	now   time.Time
}

func newHistorian(t *testing.T) *historian {
	saved := &hourStore{lines: map[string]int64{}, late: map[string]float64{}}
	with := &work.Session{Log: slog.New(slog.DiscardHandler),
		Tasks: work.NewTasks(t.Context(), errors.New("over"))}
	return &historian{saved: saved, now: time.Date(2027, 1, 15, 11, 59, 30, 0, time.UTC),
		poolHistory: &poolHistory{Session: with, store: saved, timeout: time.Minute,
			expiry:  func() time.Time { return time.Time{} },
			counted: map[poolHour]*store.PoolHour{}, turn: make(chan struct{}, 1)}}
}

// outcome is a pool that has finished lines, and whose users had so many late answers.
func outcome(id string, lines int64, late float64) plan.PoolOutcomes {
	o := plan.PoolOutcomes{ID: id, Lines: lines}
	o.Tokens = flowcontrol.Judgement{Requests: 10 * late, Late: late}
	return o
}

// after counts after some time, and saves.
func (h *historian) after(d time.Duration, outcomes ...plan.PoolOutcomes) {
	h.now = h.now.Add(d)
	h.count(h.now, outcomes)
	h.flush(context.Background())
}

func (h *historian) want(t *testing.T, lines map[string]int64, late map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(lines, h.saved.lines); diff != "" {
		t.Errorf("lines: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(late, h.saved.late); diff != "" {
		t.Errorf("late answers: -want +got\n%s", diff)
	}
}

func TestHistoryIsCountedByHour(t *testing.T) {
	h := newHistorian(t)
	h.after(0, outcome("a", 3, 1), outcome("b", 0, 0))
	h.after(time.Minute, outcome("a", 5, 1), outcome("b", 0, 2)) // 12:00:30
	h.after(time.Minute, outcome("a", 5, 1), outcome("b", 0, 2)) // nothing happens
	h.after(-2*time.Minute, outcome("a", 6, 4), outcome("b", 0, 2))
	h.want(t, map[string]int64{"a 11h": 4, "a 12h": 2, "b 12h": 0},
		map[string]float64{"a 11h": 4, "a 12h": 0, "b 12h": 2})
}

// A pool that comes back, and a controller that is replaced, count from 0.
func TestHistoryGoesOnWhenCountsBeginAgain(t *testing.T) {
	h := newHistorian(t)
	h.after(0, outcome("a", 8, 3))
	h.after(0, outcome("a", 9, 1)) // the settings have changed
	h.after(0)
	h.after(0, outcome("a", 2, 0.5))
	h.want(t, map[string]int64{"a 11h": 11}, map[string]float64{"a 11h": 4.5})
}

// A save that has failed is repeated as it was: it may have been made.
func TestHistoryIsSavedOnce(t *testing.T) {
	h := newHistorian(t)
	h.saved.fail = store.ErrUnavailable
	h.after(0, outcome("a", 3, 1))
	h.after(0, outcome("a", 5, 1))
	h.saved.fail = nil
	h.after(0, outcome("a", 9, 1))
	h.after(0, outcome("a", 9, 1))
	h.want(t, map[string]int64{"a 11h": 9}, map[string]float64{"a 11h": 1})

	h.saved.fail = store.ErrFenced // another process leads, and counts
	h.after(0, outcome("a", 10, 1))
	if len(h.saving) > 0 {
		t.Errorf("%v is kept for a save that can't be made", h.saving)
	}
}

// What requests have used is saved with the history, once.
func TestUsageIsSavedOnce(t *testing.T) {
	h := newHistorian(t)
	answered := func() {
		h.used.add(h.now, flows.Flow{Class: "standard", UseCase: "m", Tenant: "t"},
			&plan.RequestEnded{Status: 200, PromptTokens: 5})
	}
	for _, fail := range []error{store.ErrUnavailable, nil} {
		h.saved.failUsed = fail // after the save was made
		answered()
		h.after(0, outcome("a", 3, 1))
	}
	answered()
	h.saved.fail = store.ErrUnavailable
	h.after(0)
	h.saved.fail = nil
	h.after(0)
	if h.saved.used != 3 {
		t.Errorf("%d requests were saved, want 3", h.saved.used)
	}
	h.want(t, map[string]int64{"a 11h": 3}, map[string]float64{"a 11h": 1})
}

func TestHistoryIsSavedInTimeAndSweptHourly(t *testing.T) {
	h := newHistorian(t)
	h.every = 20 * time.Minute
	h.now = h.now.Truncate(time.Hour)
	var saves []string
	for range 150 { // minutes
		h.count(h.now, nil)
		calls := h.saved.calls
		if h.next.IsZero() || !h.now.Before(h.next) {
			h.save(h.now)
			h.turn <- struct{}{} // when it has ended
			<-h.turn
		}
		if h.saved.calls > calls {
			saves = append(saves, h.now.Format("15:04"))
		}
		h.now = h.now.Add(time.Minute)
	}
	if want := "11:00 12:00 13:00"; strings.Join(saves, " ") != want {
		t.Errorf("saved at %v, want %s", saves, want)
	}
}
