package work

import "github.com/tidefill/tidefill/store"

// resultCounts counts the results of a run's batch. The run's mutex guards it.
type resultCounts struct {
	// done and behind agree with the store; false once another process may have worked on the batch
	counted bool
	done    store.Tally // of done chunks
	live    store.Tally // durable results of held chunks, and of those in givenBack
	// Results in journals of chunks that other processes left, until the chunks are claimed; kept
	// only for limits
	behind    map[int]store.Tally
	unwritten store.Tally         // results that aren't durable yet; kept only for limits
	givenBack map[int]store.Chunk // unfinished ones with their tallies, for progress
}

// all sums up all results that are known.
func (n *resultCounts) all() store.Tally {
	results := Plus(Plus(n.done, n.live), n.unwritten)
	for _, t := range n.behind {
		results = Plus(results, t)
	}
	return results
}

// durable sums up the durable results of this process and of done chunks.
func (n *resultCounts) durable() store.Tally {
	results := Plus(n.done, n.live)
	for _, c := range n.givenBack {
		results = Plus(results, c.Tally)
	}
	return results
}

// found counts the results in the journal of a chunk that was claimed, without those of an earlier
// claim of this process, which are among the live ones.
func (n *resultCounts) found(c *Chunk) {
	n.behind[c.Index] = minus(c.tally, n.givenBack[c.Index].Tally)
}

// hold moves the results of a chunk, counted by found, to those of held chunks.
func (n *resultCounts) hold(c *Chunk) {
	delete(n.behind, c.Index)
	if earlier, ours := n.givenBack[c.Index]; ours {
		n.live = minus(n.live, earlier.Tally)
		delete(n.givenBack, c.Index)
	}
	n.live = Plus(n.live, c.tally)
}

// giveBack notes that a chunk is held no more.
func (n *resultCounts) giveBack(c *Chunk) {
	back := c.Chunk
	back.Tally = c.tally
	n.givenBack[c.Index] = back
}

// finished moves the results of a held chunk to those of done ones.
func (n *resultCounts) finished(c *Chunk) {
	n.live = minus(n.live, c.tally)
	n.done = Plus(n.done, c.tally)
}

// count takes over the chunks as the store has them, and the results that others left behind, which
// it changes; nil: they don't matter. Results of held chunks are counted as they come.
func (n *resultCounts) count(
	chunks []store.Chunk, behind map[int]store.Tally, held map[int]*Chunk,
) {
	if behind == nil {
		behind = map[int]store.Tally{}
	}
	n.done = store.Tally{}
	for _, c := range chunks {
		if back, was := n.givenBack[c.Index]; was && !c.Done && c.Epoch == back.Epoch {
			delete(behind, c.Index) // its results are among the live ones
		} else if was {
			n.live = minus(n.live, back.Tally)
			delete(n.givenBack, c.Index)
		}
		switch {
		case c.Done:
			n.done = Plus(n.done, c.Tally)
		case held[c.Index] != nil:
			delete(behind, c.Index)
		}
	}
	n.behind, n.counted = behind, true
}
