package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Outlook predicts what would become of a batch if it were created now. It is called concurrently.
type Outlook interface {
	// Preview answers for a batch that does not exist, and changes nothing. It returns when ctx
	// ends. That nothing is known is no error; see Preview.Unknown.
	Preview(ctx context.Context, b Hypothetical) (Preview, error)
}

// Hypothetical is a batch that might be created.
type Hypothetical struct {
	Tenant  string
	Created time.Time
	// Deadline is zero if there is none.
	Deadline time.Time
	StartBy  time.Time // zero: none
	Options  store.Options
	// Resolved is what its template and profile stand for; nil: it names none.
	Resolved *store.Resolved
	Models   []HypotheticalLines
	// Windows are completion windows that are to be judged as well.
	Windows []time.Duration
}

// HypotheticalLines are the lines of a model.
type HypotheticalLines struct {
	Model       string
	Lines       int
	PromptBytes int64
	// MaxTokens is the sum over the CappedLines, which limit the length of their answers.
	MaxTokens   int64
	CappedLines int
}

// Preview is what would become of a batch.
type Preview struct {
	// Unknown says in a sentence why nothing is predicted. Empty: it is; all other fields count.
	Unknown string
	// Forecast is that of the batch. Its verdict is empty if the batch has no deadline.
	store.Forecast
	// Nearest is the earliest deadline that can be met. Zero: none within the time that is planned.
	Nearest time.Time
	// Windows has a verdict for each of Hypothetical.Windows.
	Windows []store.Verdict
	Work    time.Duration // engine time of all lines
	Models  []PreviewModel
	// Pools lists the pools that would serve the batch.
	Pools []PreviewPool
	// Affected lists the batches that would get a worse verdict.
	Affected []AffectedBatch
}

// PreviewModel is the expected work for a model.
type PreviewModel struct {
	Model                     string
	InputTokens, OutputTokens int64
	Work                      time.Duration
	// KnownAnswers is the number of answers of the model that the expected output is based on. With
	// few of them it is a guess.
	KnownAnswers int
}

// PreviewPool is what the batch would need of a pool, beyond what is needed without it.
type PreviewPool struct {
	Pool     string
	Replicas int // at most at one time
	GPUHours float64
}

// AffectedBatch is a batch that others would delay.
type AffectedBatch struct {
	ID, Tenant    string
	Before, After store.Forecast
}

// standardWindows are the completion windows of which a dry run says whether they can be met.
var standardWindows = []string{"1h", "6h", "24h", "3d", "7d"}

// hypothetical returns b as the outlook needs it.
func hypothetical(b store.Batch, files []store.File) Hypothetical {
	h := Hypothetical{Tenant: b.Tenant, Created: b.CreatedAt, Deadline: b.Deadline,
		StartBy: b.StartBy, Options: b.Options, Resolved: b.Resolved}
	for _, window := range standardWindows {
		length, _ := parseDuration(window)
		h.Windows = append(h.Windows, length)
	}
	for _, file := range files {
		for _, m := range file.Summary.Models {
			i := slices.IndexFunc(h.Models, func(known HypotheticalLines) bool {
				return known.Model == m.Name
			})
			if i < 0 {
				i = len(h.Models)
				h.Models = append(h.Models, HypotheticalLines{Model: m.Name})
			}
			of := &h.Models[i]
			of.Lines += m.Lines
			of.PromptBytes += m.PromptBytes
			of.MaxTokens += m.MaxTokens
			of.CappedLines += m.CappedLines
		}
	}
	return h
}

// nothingPlanned says why there is no prediction by a server without an Outlook.
const nothingPlanned = "This server predicts nothing."

const (
	// previewTimeout limits the time of a prediction that was asked for.
	previewTimeout = 5 * time.Second
	// createPreviewTimeout limits the time that a creation waits for a prediction that nothing but
	// its answer depends on. Beside 1,000 batches one takes some milliseconds.
	createPreviewTimeout = 500 * time.Millisecond
)

// preview predicts what would become of b, within the time limit. A prediction that fails is logged
// and unknown, because it must not keep anybody from creating a batch.
func (s *Server) preview(
	ctx context.Context, b store.Batch, files []store.File, limit time.Duration,
) (Preview, error) {
	if s.deps.Outlook == nil {
		return Preview{Unknown: nothingPlanned}, nil
	}
	h := hypothetical(b, files)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := s.deps.Outlook.Preview(limited, h)
	switch {
	case ctx.Err() != nil:
		return Preview{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		s.log.WarnContext(ctx, "a prediction took too long", "tenant", b.Tenant)
		return Preview{Unknown: "The prediction took too long; try again."}, nil
	case err != nil:
		s.log.ErrorContext(ctx, "a prediction failed", "tenant", b.Tenant, "error", err)
		return Preview{Unknown: "The prediction failed; try again."}, nil
	case p.Unknown != "":
		return Preview{Unknown: p.Unknown}, nil
	case b.Deadline.IsZero():
		p.Verdict = ""
	}
	slices.SortStableFunc(p.Affected, func(x, y AffectedBatch) int {
		return cmp.Compare(x.ID, y.ID)
	})
	return p, nil
}
