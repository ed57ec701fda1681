package tables

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Listing is a [store.BatchQuery] as scans of indexes. A scan reads the entries of one tag, or else
// of one tenant, with one state and within one span.
type Listing struct {
	Tenant      string
	States      []store.State
	Tags        []int64 // the first one selects the index entries, the others are filters
	Sort, Other string  // columns: created and due, or due and created
	Ascending   bool
	Spans       []Span // in the order of the listing
	Low, High   int64  // bounds of the other column, both included
	Limit       int    // of a page; 0: none
}

// AllStates lists the states of batches.
var AllStates = []store.State{
	store.Validating, store.InProgress, store.Finalizing, store.Completed,
	store.Failed, store.Expired, store.Cancelling, store.Cancelled,
}

// NewListing returns the listing of a query from its first page on.
func NewListing(tenant string, q store.BatchQuery) Listing {
	l := Listing{
		Tenant:    tenant,
		States:    AllStates,
		Tags:      QueryTags(tenant, q),
		Sort:      "created",
		Other:     "due",
		Ascending: q.Ascending,
		Limit:     q.Limit,
	}
	if len(q.States) > 0 {
		l.States = slices.Compact(slices.Sorted(slices.Values(q.States)))
	}
	low, high := between(q.CreatedAfter, q.CreatedBefore, math.MaxInt64)
	// A batch without a deadline is within no bounds.
	l.Low, l.High = between(q.DeadlineAfter, q.DeadlineBefore, Never-1)
	if q.DeadlineAfter.IsZero() && q.DeadlineBefore.IsZero() {
		l.High = Never
	}
	if q.Order == store.ByDeadline {
		l.Sort, l.Other = l.Other, l.Sort
		low, high, l.Low, l.High = l.Low, l.High, low, high
	}
	l.Spans = []Span{spanOf(low, high)}
	if q.Order == store.ByDeadline && !q.Ascending {
		l.Spans = undatedLast(l.Spans[0])
	}
	return l
}

// undatedLast divides a descending span of deadlines, so that batches without one are last although
// their column sorts first.
func undatedLast(all Span) []Span {
	dated, undated := all, all
	undated.From = Position{Never, math.MinInt64}
	if dated.To.Compare(undated.From) > 0 {
		dated.To = undated.From
	}
	return []Span{dated, undated}
}

// between returns the included bounds of two excluded ones. A zero time is no bound.
func between(after, before time.Time, highest int64) (low, high int64) {
	low, high = math.MinInt64, highest
	if !after.IsZero() {
		low = Micros(after) + 1
	}
	if !before.IsZero() {
		high = Micros(before.Add(time.Microsecond-1)) - 1
	}
	return low, high
}

// SkipTo removes the positions up to the last batch of the previous page.
func (l *Listing) SkipTo(after Position) {
	if len(l.Spans) > 1 && after.At == Never {
		l.Spans = l.Spans[1:]
	}
	l.Spans[0].SkipTo(after, l.Ascending)
}

// RarestFirst moves the tag with the fewest batches to the front, for the shortest scan.
func (l *Listing) RarestFirst(batches map[int64]int) {
	slices.SortFunc(l.Tags, func(a, b int64) int { return cmp.Compare(batches[a], batches[b]) })
}
