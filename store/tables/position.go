package tables

import (
	"cmp"
	"fmt"
	"math"

	"github.com/tidefill/tidefill/store"
)

// Position is a position in the order of a listing: a time, and the number of the row.
type Position struct{ At, Seq int64 }

// ParsePosition reads what [Position.String] has written.
func ParsePosition(next string) (p Position, err error) {
	if _, err := fmt.Sscanf(next, "%d.%d", &p.At, &p.Seq); err != nil {
		return p, fmt.Errorf("next %q: %w", next, store.ErrBadCursor)
	}
	return p, nil
}

func (p Position) String() string { return fmt.Sprintf("%d.%d", p.At, p.Seq) }

// Compare orders positions by time and then by number.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.At, q.At), cmp.Compare(p.Seq, q.Seq))
}

// Span is a range of positions, without its bounds.
type Span struct{ From, To Position }

// spanOf returns the span of the times, both included.
func spanOf(low, high int64) Span {
	return Span{Position{low, math.MinInt64}, Position{high, math.MaxInt64}}
}

// AllTimes is the span of all positions.
func AllTimes() Span { return spanOf(math.MinInt64, math.MaxInt64) }

// SkipTo removes the positions up to the last one of the previous page.
func (s *Span) SkipTo(after Position, ascending bool) {
	if ascending && after.Compare(s.From) > 0 {
		s.From = after
	}
	if !ascending && after.Compare(s.To) < 0 {
		s.To = after
	}
}
