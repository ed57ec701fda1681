package api

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/store"
)

// An operator sees the batches of all tenants, with the progress and the prediction that their
// owners see.
func TestSummaries(t *testing.T) {
	s := newService(t)
	running, done := s.in(store.InProgress), s.in(store.Completed)
	s.change(running, func(b *store.Batch) {
		b.Counts.Total = 100
	})
	owner, err := s.meta.Register(t.Context(), "n", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.meta.PostProgress(t.Context(), owner, map[string]store.ProgressPost{
		running: {Progress: store.Progress{Completed: 30, InFlight: 4, LinesPerSecond: 7,
			Waiting: "token_time", UpdatedAt: s.clock.now()},
			Chunks: []store.ChunkProgress{{Index: 0, Epoch: 1, Completed: 30}}},
	}); err != nil {
		t.Fatal(err)
	}
	all, err := s.server.Summaries(t.Context(), []string{running, "batch_gone", done})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[1].ID != done || all[1].State != store.Completed {
		t.Fatalf("summaries are %+v", all)
	}
	got := all[0]
	if got.CreatedAt.IsZero() || got.Tenant != DefaultTenant {
		t.Errorf("the batch is %+v", got)
	}
	got.CreatedAt, got.Deadline = time.Time{}, time.Time{}
	want := BatchSummary{ID: running, Tenant: DefaultTenant, State: store.InProgress,
		Models: []string{"m"}, Counts: store.Counts{Total: 100, Completed: 30}, InFlight: 4,
		Rate: 7, Waiting: "token_time", Failures: []store.Failure{},
		Finish: time.Unix(s.clock.now().Unix()+10, 0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the summary is (-want +got)\n%s", diff)
	}
}
