package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// retryEvery is how long to wait before asking for chunks again that others hold, or after the store
// did not answer.
const retryEvery = time.Second

// loadedChunk tells the loop what came of a Claim.
type loadedChunk struct {
	plan.Loaded
	chunk *chunk
}

// loadChunk claims the next chunk of a job, learns from its journal what is done, and reads the
// rest.
func (s *session) loadChunk(ctx context.Context, job plan.JobKey) {
	answer := loadedChunk{Loaded: plan.Loaded{Key: job}}
	if r := s.run(job.Batch); r != nil {
		var err error
		answer, err = s.claimNext(ctx, r, job)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errStopped) {
			s.log.WarnContext(ctx, "could not load lines, trying again", "batch_id", job.Batch,
				"model", job.Model, "error", err)
			r.waitFor(reasonOf(err))
		}
		if errors.Is(err, batchfile.ErrDamaged) {
			s.background.Go(func() { s.stopLogged(job.Batch, codeDamaged, damagedInput) })
		}
		if err != nil {
			answer = loadedChunk{Loaded: plan.Loaded{Key: job, More: true, Again: retryEvery}}
		} else {
			r.waitFor(plan.Flowing)
		}
	}
	s.inbox.put(answer)
}

func (s *session) claimNext(ctx context.Context, r *run, job plan.JobKey) (loadedChunk, error) {
	none := loadedChunk{Loaded: plan.Loaded{Key: job}}
	src, err := s.open(ctx, r)
	if err != nil {
		return none, err
	}
	below, err := s.canaryAllows(ctx, r, job.Model)
	if err != nil {
		return none, err
	}
	for {
		if below == 0 {
			none.More, none.Again = true, retryEvery
			return none, nil
		}
		claimed, ok, err := s.claim(ctx, r, job.Model)
		if err != nil {
			return none, err
		}
		if !ok {
			return s.nothingToClaim(ctx, r, job)
		}
		if claimed.First >= below { // another dispatcher took the canaries meanwhile
			below = 0
			s.abandon(r, claimed)
			continue
		}
		c, lines, err := s.take(ctx, r, src, claimed)
		if err != nil {
			s.abandon(r, claimed)
			return none, err
		}
		if len(lines) > 0 {
			return loadedChunk{Loaded: plan.Loaded{Key: job, Chunk: c.Index, Lines: lines,
				More: true}, chunk: c}, nil
		}
		// A crash came between the last result and the word that the chunk is done.
		s.background.Go(func() { s.finishUntilDone(c) })
	}
}

// claim claims a chunk of a model that this dispatcher leads. It is in hand until it is taken and
// finished, or abandoned. A claim whose answer gets lost leaves the chunk ours but not in hand, and
// so free for the next claim.
func (s *session) claim(
	ctx context.Context, r *run, model string,
) (c store.Chunk, ok bool, err error) {
	s.lease.leading.claims.RLock()
	defer s.lease.leading.claims.RUnlock()
	if !s.lease.leading.leadsModel(model) {
		return c, false, nil
	}
	r.claiming.Lock()
	defer r.claiming.Unlock()
	claimed, err := s.deps.Metadata.ClaimChunks(ctx, s.lease.owner, r.id, model, 1, r.inHand())
	if err != nil || len(claimed) == 0 {
		return c, false, err
	}
	r.mu.Lock()
	r.reading[claimed[0].Index] = model
	r.mu.Unlock()
	return claimed[0], true, nil
}

// abandon lets go of a chunk that was claimed and not taken.
func (s *session) abandon(r *run, c store.Chunk) {
	r.mu.Lock()
	delete(r.reading, c.Index)
	stopped := r.stopped
	r.mu.Unlock()
	s.background.Go(func() {
		s.putBack(c)
		if stopped { // it waited for this
			s.keep.add(r.id)
		}
	})
}

// nothingToClaim tells "all is done" from "others are at it".
func (s *session) nothingToClaim(
	ctx context.Context, r *run, job plan.JobKey,
) (loadedChunk, error) {
	none := loadedChunk{Loaded: plan.Loaded{Key: job}}
	chunks, err := s.deps.Metadata.Chunks(ctx, r.id)
	if err != nil {
		return none, err
	}
	open, own := 0, 0
	r.mu.Lock()
	for _, c := range chunks {
		if c.Done {
			continue
		}
		open++
		if r.chunks[c.Index] != nil && c.Model == job.Model {
			own++
		}
	}
	r.mu.Unlock()
	switch {
	case open == 0:
		s.keep.add(r.id)
	case own == 0 && anyOpen(chunks, job.Model):
		// another dispatcher's; its claim may end without a word
		none.More, none.Again = true, retryEvery
	default:
		// Ours are under way. Others may let go of theirs meanwhile: look again later.
		none.More, none.Again = true, s.cfg.LeaseTTL
	}
	return none, nil
}

func anyOpen(chunks []store.Chunk, model string) bool {
	for _, c := range chunks {
		if !c.Done && c.Model == model {
			return true
		}
	}
	return false
}

// open opens the batch's files at the first claim, and counts what is done.
func (s *session) open(ctx context.Context, r *run) (*source, error) {
	if err := s.count(ctx, r); err != nil {
		return nil, err
	}
	r.mu.Lock()
	src, b := r.source, r.batch
	r.mu.Unlock()
	if src != nil {
		return src, nil
	}
	parameters, err := s.deps.Metadata.Parameters(ctx, r.id)
	if err != nil {
		return nil, err
	}
	src, err = openSource(r.work, s.deps.Blobs, &b)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil { // another model's loader was faster
		src.close()
		return r.source, nil
	}
	if r.stopped {
		src.close()
		return nil, fmt.Errorf("batch %s: %w", r.id, errStopped)
	}
	r.source, r.edits = src, allEdits(parameters, src.inputs)
	r.trouble = plan.Flowing
	r.canary = newCanaryGate(&r.batch)
	return src, nil
}

// take opens the journal of a chunk that was just claimed and reads the lines that it has no result
// of.
func (s *session) take(
	ctx context.Context, r *run, src *source, claimed store.Chunk,
) (*chunk, []plan.Line, error) {
	lines, err := src.at(claimed.First, claimed.Count)
	if err != nil {
		return nil, nil, err
	}
	slotOf := make(map[uint32]int, len(lines))
	for slot := range lines {
		slotOf[lines[slot].number] = slot
	}
	c := &chunk{Chunk: claimed, run: r, lines: lines}
	done := make([]bool, len(lines))
	replay := func(rec store.Record) {
		slot, known := slotOf[rec.Line]
		if !known || done[slot] {
			return
		}
		done[slot] = true
		c.tally.Usage.Add(rec.Usage)
		if rec.Failed {
			c.tally.Failed++
		} else {
			c.tally.Completed++
		}
	}
	c.journal, err = s.deps.Journals.Open(ctx, claimed.ChunkID, claimed.Epoch, replay,
		func(commit store.Commit) { s.committed(c, commit) })
	if err != nil {
		return nil, nil, fmt.Errorf("open journal of chunk %d: %w", claimed.Index, err)
	}
	if err := fetch(lines, s.memory, func(slot int) bool { return !done[slot] }); err != nil {
		c.journal.Close(ctx)
		c.letGo(s.memory)
		return nil, nil, err
	}
	todo := make([]plan.Line, 0, len(lines))
	for slot := range lines {
		if !done[slot] {
			todo = append(todo, plan.Line{
				Slot: slot, PromptTokens: int(float64(lines[slot].PromptBytes)/bytesPerToken) + 1,
				MaxTokens: int(lines[slot].MaxTokens),
			})
		}
	}
	c.pending, c.unstarted = len(todo), len(todo)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped { // what another dispatcher has left may be over a limit already
		r.behind[c.Index] = c.tally
		s.stopIfOver(r)
	}
	if r.stopped || r.stopping {
		c.journal.Close(ctx)
		c.letGo(s.memory)
		return nil, nil, fmt.Errorf("batch %s: %w", r.id, errStopped)
	}
	delete(r.behind, c.Index)
	delete(r.reading, c.Index)
	r.chunks[c.Index] = c
	r.live = plus(r.live, c.tally)
	c.leaving = len(todo) == 0
	return c, todo, nil
}

// errStopped ends work on a batch whose lines may not start any more.
var errStopped = errors.New("stopped")

func plus(a, b store.Tally) store.Tally {
	a.Completed += b.Completed
	a.Failed += b.Failed
	a.Usage.Add(b.Usage)
	return a
}

// reasonOf names for users what an error of the store makes a batch wait for.
func reasonOf(err error) plan.Reason {
	if errors.Is(err, store.ErrNoSpace) {
		return plan.DiskFull
	}
	return plan.StoreDown
}
