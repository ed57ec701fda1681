package work

import "github.com/tidefill/tidefill/store"

// TallyOf returns what one result adds to a tally.
func TallyOf(rec store.Record) store.Tally {
	t := store.Tally{Usage: rec.Usage, Bytes: rec.Size}
	if rec.Failed {
		t.Failed = 1
	} else {
		t.Completed = 1
	}
	return t
}

// Plus returns the sum of two tallies.
func Plus(a, b store.Tally) store.Tally {
	a.Completed += b.Completed
	a.Failed += b.Failed
	a.Usage.Add(b.Usage)
	a.Bytes += b.Bytes
	return a
}

func minus(a, b store.Tally) store.Tally {
	a.Completed -= b.Completed
	a.Failed -= b.Failed
	a.Bytes -= b.Bytes
	a.Usage.InputTokens -= b.Usage.InputTokens
	a.Usage.OutputTokens -= b.Usage.OutputTokens
	a.Usage.TotalTokens -= b.Usage.TotalTokens
	a.Usage.CachedTokens -= b.Usage.CachedTokens
	a.Usage.ReasoningTokens -= b.Usage.ReasoningTokens
	return a
}
