package send

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
)

// spool is a real one whose medium has the space that the test sets.
type spool struct {
	*disk.Store
	space int64
	err   error // of new files
}

func (s *spool) TemporarySpace() (int64, error) { return s.space, nil }

func (s *spool) Temporary(ctx context.Context) (store.Temporary, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Temporary(ctx)
}

func TestLinesWaitForTheSpaceOfTheirAnswers(t *testing.T) {
	files, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	medium, sent := &spool{Store: files}, map[string]plan.Room{}
	inbox := work.NewInbox()
	runs := work.NewRuns(work.NewTasks(t.Context(), openai.ErrEvicted), inbox, nil,
		func() *registry.Snapshot { return &registry.Snapshot{} })
	for _, id := range []string{"a", "b"} {
		runs.Update(store.Batch{ID: id})
	}
	var log bytes.Buffer
	rs := NewRooms(&work.Session{Inbox: inbox, Runs: runs,
		Log: slog.New(slog.NewTextHandler(&log, nil))}, medium)
	key := func(batch string) plan.JobKey { return plan.JobKey{Batch: batch, Model: "m"} }
	limited := func(batch string, lines int) plan.Room {
		return plan.Room{Key: key(batch), Reason: plan.DiskFull, Lines: lines}
	}
	kept := func(batch string, bytes int64) func() { return func() { rs.kept(key(batch), bytes) } }
	notKept := func(batch string, bytes int64, whole bool) func() {
		return func() {
			rs.notKept(key(batch), &openai.NotKept{Bytes: bytes, Whole: whole,
				Err: store.ErrNoSpace})
		}
	}
	type rooms map[string]plan.Room
	a, b := rooms{"a": {Key: key("a")}}, func(lines int) plan.Room { return limited("b", lines) }
	for _, step := range []struct {
		what   string
		do     func()
		space  int64
		broken error
		want   rooms // sent
	}{
		{"nothing is in a file", nil, 0, nil, nil},
		{"there is much space", kept("a", 100), 100 << 20, nil, nil},
		{"another program takes it", nil, 1050, nil, rooms{"a": limited("a", 10)}},
		{"a smaller answer", kept("a", 10), 1050, nil, nil},
		{"a larger answer", kept("a", 500), 1050, nil, rooms{"a": limited("a", 2)}},
		{"too little for one", nil, 499, nil, rooms{"a": limited("a", 0)}},
		{"space again", nil, 100 << 20, nil, a},
		{"no space was found, and there is some", notKept("a", 400, true), 100 << 20, nil, a},
		{"no file can be made", notKept("a", 400, true), 100 << 20, store.ErrNoSpace,
			rooms{"a": limited("a", 0)}},
		{"nor on a broken disk", nil, 100 << 20, store.ErrUnavailable,
			rooms{"a": {Key: key("a"), Reason: plan.StoreDown}}},
		{"part of an answer", notKept("a", 1000, false), 1240, nil, rooms{"a": limited("a", 0)}},
		{"one line shows its size", nil, 100 << 20, nil, rooms{"a": limited("a", 1)}},
		{"it is known", kept("a", 1100), 2 * 5500, nil, rooms{"a": limited("a", 10)}},
		{"two jobs", kept("b", 5500), 2 * 5500, nil, rooms{"a": limited("a", 5), "b": b(1)}},
		{"less for both", nil, 5500, nil, rooms{"a": limited("a", 2), "b": b(0)}},
		{"enough for the first alone", nil, 1100, nil, rooms{"a": limited("a", 1)}},
		{"the first is gone", func() { runs.Remove("a") }, 5500, nil, rooms{"b": b(1)}},
	} {
		clear(sent)
		medium.space, medium.err = step.space, step.broken
		if step.do != nil {
			step.do()
		}
		rs.adapt(t.Context())
		for _, m := range inbox.Take(nil) {
			room := m.(work.PlannerEvent).Event.(plan.Room)
			sent[room.Key.Batch] = room
		}
		if !maps.Equal(sent, step.want) {
			t.Errorf("%s: sent %+v, want %+v", step.what, sent, step.want)
		}
		if stops := rs.Stopped() != plan.Flowing; stops != (rs.count() > 0) {
			t.Errorf("%s: stopped is %v", step.what, rs.Stopped())
		}
	}
	if n := strings.Count(log.String(), "no space for answers"); n != 4 {
		t.Errorf("logged %d times that lines stop:\n%s", n, log.String())
	}
}

// count counts the jobs that are stopped.
func (rs *Rooms) count() (n int) {
	for _, j := range rs.jobs {
		if j.room.Stops() {
			n++
		}
	}
	return n
}
