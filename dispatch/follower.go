package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// follower corrects the lines left of models that this process does not lead: others work on them.
// So every process knows the same work, and one that takes over begins with it.
type follower struct {
	metadata  Metadata
	board     ProgressBoard
	leading   *leadership
	runs      *runs
	remaining *remaining
	inbox     *inbox
	log       *slog.Logger

	// of the runs that were followed in the last round: lines left, by model, as last sent, and the
	// models of chunks, if they were needed
	sent   map[*run]map[string]int
	models map[*run]map[int]string
}

const (
	// followEvery is the time between two rounds.
	followEvery = 2 * time.Second
	// followShare is the greatest share of the time that rounds take.
	followShare = 0.05
)

// run follows other processes until ctx is done.
func (f *follower) run(ctx context.Context) {
	for failing := false; ; {
		began := time.Now()
		err := f.follow(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				f.log.WarnContext(ctx, "could not read what other processes have done, trying "+
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
func (f *follower) follow(ctx context.Context) error {
	followed := map[string]*run{}
	var batches []string
	f.runs.each(func(r *run) {
		if !r.isStopped() && !f.leading.leadsAll(r.models()) {
			followed[r.id] = r
			batches = append(batches, r.id)
		}
	})
	sent, models := f.sent, f.models
	f.sent = make(map[*run]map[string]int, len(followed))
	f.models = make(map[*run]map[int]string)
	if len(followed) == 0 {
		return nil
	}
	// In this order: a chunk that is finished meanwhile counts as left until the next round. More
	// work than there is does less harm than less.
	if err := f.remaining.count(ctx); err != nil {
		return err
	}
	open, err := store.OpenResults(ctx, f.board, f.metadata, batches)
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

// left returns how many lines are left of each model that this process does not lead. open counts
// the results in chunks that are not done, whose models are in modelOf; nil: they were not read.
func (f *follower) left(
	ctx context.Context, r *run, open []store.ChunkProgress, modelOf map[int]string,
) (map[string]int, error) {
	b := r.lastRead()
	if len(b.Models) > 1 && len(open) > 0 && modelOf == nil {
		chunks, err := f.metadata.Chunks(ctx, r.id)
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
	of, left := f.remaining.of(&b), map[string]int{}
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
func (f *follower) send(r *run, left, before map[string]int) {
	r.unlessStopped(func(b *store.Batch) {
		put := planBatch(b)
		for _, m := range planModels(b, func(model string) int { return left[model] }) {
			n, follows := left[m.Model]
			if was, known := before[m.Model]; follows && (!known || was != n) {
				put.Models = append(put.Models, m)
			}
		}
		if len(put.Models) > 0 {
			f.inbox.event(plan.BatchPut{Batch: put})
		}
	})
}
