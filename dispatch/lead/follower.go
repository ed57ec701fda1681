package lead

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// Follower corrects the lines left of models that this process does not lead: others work on them.
// So every process knows the same work, and one that takes over begins with it.
type Follower struct {
	*work.Session
	done      Done
	board     Posts
	leading   *Leadership
	remaining *work.Remaining

	// of the runs that were followed in the last round: lines left, by model, as last sent, and the
	// models of chunks, if they were needed
	sent   map[*work.Run]map[string]int
	models map[*work.Run]map[int]string
}

// NewFollower returns a follower, which has read nothing yet.
func NewFollower(
	s *work.Session, done Done, board Posts, leading *Leadership, remaining *work.Remaining,
) *Follower {
	return &Follower{Session: s, done: done, board: board, leading: leading, remaining: remaining}
}

const (
	// followEvery is the time between two rounds.
	followEvery = 2 * time.Second
	// followShare is the greatest share of the time that rounds take.
	followShare = 0.05
)

// Run follows other processes until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	for failing := false; ; {
		began := time.Now()
		err := f.follow(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				f.Log.WarnContext(ctx, "could not read what other processes have done, trying "+
					"again", "error", err)
			}
		}
		wait := max(followEvery, time.Duration(float64(time.Since(began))/followShare))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// follow reads what is left once, and sends what has changed to the loop.
func (f *Follower) follow(ctx context.Context) error {
	followed := map[string]*work.Run{}
	var batches []string
	f.Runs.Each(func(r *work.Run) {
		if !r.Stopped() && !f.leading.leadsAll(r.Models()) {
			followed[r.ID] = r
			batches = append(batches, r.ID)
		}
	})
	sent, models := f.sent, f.models
	f.sent = make(map[*work.Run]map[string]int, len(followed))
	f.models = make(map[*work.Run]map[int]string)
	if len(followed) == 0 {
		return nil
	}
	// In this order: a chunk that is finished meanwhile counts as left until the next round. More
	// work than there is does less harm than less.
	if err := f.remaining.Count(ctx); err != nil {
		return err
	}
	open, err := store.OpenResults(ctx, f.board, f.done, batches)
	if err != nil {
		return err
	}
	for id, r := range followed {
		left, err := f.left(ctx, r, open[id], models[r])
		if err != nil {
			return err
		}
		f.send(r, left, sent[r])
		f.sent[r] = left
	}
	return nil
}

// left returns the number of lines that are left of each model that this process does not lead.
// open counts the results in chunks that are not done, whose models are in modelOf; nil: they were
// not read.
func (f *Follower) left(
	ctx context.Context, r *work.Run, open []store.ChunkProgress, modelOf map[int]string,
) (map[string]int, error) {
	b := r.Batch()
	if len(b.Models) > 1 && len(open) > 0 && modelOf == nil {
		chunks, err := f.done.Chunks(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		modelOf = make(map[int]string, len(chunks))
		for _, c := range chunks {
			modelOf[c.Index] = c.Model
		}
	}
	if modelOf != nil {
		f.models[r] = modelOf
	}
	of, left := f.remaining.Of(&b), map[string]int{}
	for _, m := range b.Models {
		if !f.leading.leadsModel(m.Model) {
			left[m.Model] = of(m.Model)
		}
	}
	for _, c := range open {
		model := b.Models[0].Model
		if len(b.Models) > 1 {
			model = modelOf[c.Index]
		}
		if n, follows := left[model]; follows {
			left[model] = max(0, n-c.Completed-c.Failed)
		}
	}
	return left, nil
}

// send sends the counts that differ from those sent before to the loop.
func (f *Follower) send(r *work.Run, left, before map[string]int) {
	r.UnlessStopped(func(b *store.Batch) {
		put := f.Runs.Plan(b)
		for _, m := range work.PlanModels(b, func(model string) int { return left[model] }) {
			n, follows := left[m.Model]
			if was, known := before[m.Model]; follows && (!known || was != n) {
				put.Models = append(put.Models, m)
			}
		}
		if len(put.Models) > 0 {
			f.Inbox.Event(plan.BatchPut{Batch: put})
		}
	})
}
