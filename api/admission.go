package api

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// refuses reports whether a batch is refused because of its prediction.
func (s *Server) refuses(b store.Batch, p Preview) bool {
	return s.strict(b) && p.Verdict == store.VerdictInfeasible
}

// strict reports whether the operator or the user wants a batch refused that can't meet its
// deadline.
func (s *Server) strict(b store.Batch) bool {
	return b.Options.Strict || s.config().Admission == StrictAdmission
}

// admit returns an error for a batch that can't meet its deadline and must. If nothing can be
// predicted, it admits the batch: otherwise no batch could be created while no process leads. Else
// it returns the prediction, which may be unknown.
func (s *Server) admit(
	ctx context.Context, b store.Batch, files []store.File,
) (f store.Forecast, err error) {
	limit := previewTimeout
	if !s.strict(b) || b.Deadline.IsZero() {
		if s.deps.Outlook == nil || !s.previewing.TryLock() {
			return f, nil // many are created at once: the next decision has their verdicts
		}
		defer s.previewing.Unlock()
		limit = createPreviewTimeout
	}
	p, err := s.preview(ctx, b, files, limit)
	if err != nil {
		return f, fmt.Errorf("predict the end of batch %s: %w", b.ID, err)
	}
	if s.refuses(b, p) {
		return f, infeasible(b, p)
	}
	return p.Forecast, nil
}

// infeasible returns the answer to a batch that can't meet its deadline.
func infeasible(b store.Batch, p Preview) *httpError {
	rfc := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	param, by := "completion_window", fmt.Sprintf("within its completion window %s",
		quoted(b.Window))
	if length, err := parseDuration(b.Window); err != nil ||
		b.Deadline.Before(b.CreatedAt.Add(length)) {
		param, by = extensionsKey+".deadline", "by its deadline "+rfc(b.Deadline)
	}
	message := fmt.Sprintf("The batch can't be done %s, even with every replica that may be "+
		"started", by)
	if !p.Finish.IsZero() {
		message += "; it would be done at " + rfc(p.Finish)
	}
	switch window := windowTo(b.CreatedAt, p.Nearest); {
	case p.Nearest.IsZero() || window == "":
		message += ". No completion window can be met: use 'best_effort', or split the batch."
	case param == "completion_window":
		message += fmt.Sprintf(". The nearest completion window that can be met is '%s'.", window)
	default:
		message += fmt.Sprintf(". The nearest deadline that can be met is %s, a completion "+
			"window of '%s'.", rfc(p.Nearest), window)
	}
	return invalid(param, "deadline_infeasible", "%s", message)
}
