package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
)

// lead keeps asking for the leadership of what the upstreams serve.
func (s *session) lead(ctx context.Context) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for ctx.Err() == nil {
		// the heartbeat sees whether it is superseded
		if err := s.leadOnce(ctx); err != nil && ctx.Err() == nil && !isFenced(err) {
			s.log.WarnContext(ctx, "could not ask for leadership, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-s.leading.changed:
		}
	}
}

func (s *session) leadOnce(ctx context.Context) error {
	wanted := s.leading.wanted(time.Now(), len(s.upstreams))
	if slices.ContainsFunc(wanted, s.leading.lacks) {
		if err := s.ask(ctx, wanted); err != nil {
			return err
		}
	}
	for _, event := range s.leading.announce() {
		s.inbox.put(event)
	}
	return s.resignUnwanted(ctx, wanted)
}

// ask tries to lead all that is wanted, or else what can be led alone.
func (s *session) ask(ctx context.Context, wanted []string) error {
	epoch, others, err := s.deps.Metadata.Lead(ctx, s.owner, wanted)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		if stoodBy := s.leading.standsBy(); !stoodBy && len(s.leading.names()) == 0 {
			s.log.InfoContext(ctx, "standing by: another dispatcher leads",
				"leaders", slices.Compact(slices.Sorted(maps.Values(others))))
		}
		// Twice the lease: a leader that starts anew has had its chance to want it.
		alone := s.leading.refused(time.Now(), wanted, others, 2*s.cfg.LeaseTTL)
		if len(alone) == 0 || !slices.ContainsFunc(alone, s.leading.lacks) {
			return nil
		}
		wanted = alone
		if epoch, others, err = s.deps.Metadata.Lead(ctx, s.owner, wanted); err != nil ||
			len(others) > 0 {
			return err
		}
		s.log.WarnContext(
			ctx, "leading a part of what the upstreams serve, another dispatcher leads the rest: "+
				"give dispatchers that share a store the same upstreams, or such as serve different models", "names", wanted)
	} else {
		s.leading.granted()
	}
	return s.takeOver(ctx, epoch, wanted)
}

// takeOver begins to lead. What is left of each batch is counted anew, since another dispatcher may
// have worked on it.
func (s *session) takeOver(ctx context.Context, epoch int64, names []string) error {
	if err := s.recount(ctx); err != nil {
		return fmt.Errorf("count what is left of the batches: %w", err)
	}
	if s.leading.gain(names) {
		s.log.InfoContext(ctx, "leading", "epoch", epoch, "names", len(names))
	}
	return nil
}

// resignUnwanted gives up models that no upstream serves any more, once no chunk of them is in
// hand.
func (s *session) resignUnwanted(ctx context.Context, wanted []string) error {
	var unwanted []string
	for _, name := range s.leading.names() {
		if _, found := slices.BinarySearch(wanted, name); !found {
			unwanted = append(unwanted, name)
		}
	}
	if len(unwanted) == 0 {
		return nil
	}
	s.leading.claims.Lock()
	defer s.leading.claims.Unlock()
	held := s.modelsInHand()
	unwanted = slices.DeleteFunc(unwanted, func(name string) bool { return held[name] })
	s.leading.give(unwanted) // first, or the heartbeat would find that another has it
	if err := s.deps.Metadata.Resign(ctx, s.owner, unwanted); err != nil {
		s.leading.gain(unwanted) // to be given up at the next try
		return err
	}
	return nil
}

// modelsInHand returns the names of the models of which chunks are in hand.
func (s *session) modelsInHand() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string]bool{}
	for _, r := range s.runs {
		r.mu.Lock()
		for _, c := range r.chunks {
			held[modelName(c.Model)] = true
		}
		for _, model := range r.reading {
			held[modelName(model)] = true
		}
		r.mu.Unlock()
	}
	return held
}

// leadsAnyOf reports whether this dispatcher leads a model of the run's batch.
func (s *session) leadsAnyOf(r *run) bool {
	r.mu.Lock()
	models := r.batch.Models
	r.mu.Unlock()
	return slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return s.leading.leadsModel(m.Model)
	})
}

// confirmLead makes sure that all that this dispatcher leads is still its own: it may have been
// frozen for longer than its lease.
func (s *session) confirmLead(ctx context.Context) error {
	names := s.leading.names()
	if len(names) == 0 {
		return nil
	}
	_, others, err := s.deps.Metadata.Lead(ctx, s.owner, names)
	if err == nil && len(others) > 0 {
		return fmt.Errorf("%s leads %d of our runners and models: %w",
			slices.Sorted(maps.Values(others))[0], len(others), store.ErrFenced)
	}
	return err
}
