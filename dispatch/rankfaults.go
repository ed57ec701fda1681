package dispatch

import (
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
)

// rankFaults counts the batches of a round of progress that the ordering policy can't rank, and
// logs each fault once. The loop owns it.
type rankFaults struct {
	logged map[string]bool
	count  int
}

const (
	// maxRankFaults limits the faults that are logged, whose texts may contain names of users.
	maxRankFaults = 100
	// longestRankFault limits the text of a fault, in bytes.
	longestRankFault = 300
)

// note returns the fault of a batch in one row; empty: it is ranked.
func (f *rankFaults) note(log *slog.Logger, r *work.Run, s plan.BatchStatus) string {
	if s.Unranked == nil {
		return ""
	}
	f.count++
	text := oneRow(s.Unranked.Error())
	if !f.logged[text] && len(f.logged) < maxRankFaults {
		if f.logged == nil {
			f.logged = map[string]bool{}
		}
		f.logged[text] = true
		log.Error("the ordering policy can't rank a batch, which goes last; correct "+
			"scheduler.expression (logged once for this fault)", "batch_id", r.ID,
			"tenant", r.Tenant, "error", text)
	}
	return text
}

// oneRow joins the rows of a text and limits its length.
func oneRow(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longestRankFault {
		return text
	}
	cut := longestRankFault
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
