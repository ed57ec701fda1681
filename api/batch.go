package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// batchObject is a batch in OpenAI's format. Nullable fields are sent as null, never left out:
// typed SDKs read a missing time as 1970 and "" as an id.
type batchObject struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Endpoint         string            `json:"endpoint"`
	Model            *string           `json:"model"`
	Errors           *batchErrors      `json:"errors"`
	InputFileID      string            `json:"input_file_id"`
	CompletionWindow string            `json:"completion_window"`
	Status           store.State       `json:"status"`
	OutputFileID     *string           `json:"output_file_id"`
	ErrorFileID      *string           `json:"error_file_id"`
	CreatedAt        int64             `json:"created_at"`
	InProgressAt     *int64            `json:"in_progress_at"`
	ExpiresAt        *int64            `json:"expires_at"`
	FinalizingAt     *int64            `json:"finalizing_at"`
	CompletedAt      *int64            `json:"completed_at"`
	FailedAt         *int64            `json:"failed_at"`
	ExpiredAt        *int64            `json:"expired_at"`
	CancellingAt     *int64            `json:"cancelling_at"`
	CancelledAt      *int64            `json:"cancelled_at"`
	RequestCounts    requestCounts     `json:"request_counts"`
	Usage            *batchUsage       `json:"usage"`
	Metadata         map[string]string `json:"metadata"`
	Tidefill         batchDetails      `json:"tidefill"`
	// as in AIBrix; absent: the batch has neither a template nor a profile
	Resolved *resolvedObject `json:"_aibrix,omitempty"`
}

type requestCounts struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type batchErrors struct {
	Object string       `json:"object"`
	Data   []batchError `json:"data"`
}

type batchError struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
	Line    *int    `json:"line"`
}

type batchUsage struct {
	InputTokens        int64 `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int64 `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

// batchDetails is the `tidefill` object of a batch, for what OpenAI's format has no field.
type batchDetails struct {
	Tenant   string  `json:"tenant"`
	Paused   bool    `json:"paused"`
	Progress float64 `json:"progress"` // share of the lines that have ended, 0 to 1
	Rate     float64 `json:"rate"`     // lines per second at present
	// end as predicted or, while nothing is, at this rate; in Unix seconds
	ETA *int64 `json:"eta"`
	forecast
	Deadline *int64 `json:"deadline"`
	StartBy  *int64 `json:"start_by"`
	// no line was in flight by start_by
	StartByMissed bool  `json:"start_by_missed"`
	Priority      int   `json:"priority"`
	Attempts      int64 `json:"attempts"` // requests sent, retries included
	InFlight      int   `json:"in_flight"`
	Retrying      int   `json:"retrying"`
	// lines of request_counts.failed without an answer, because the batch ended first
	NotRun int `json:"not_run"`
	// when a dispatcher last reported the numbers that change while the batch runs, which it does
	// when they change, in Unix seconds; null: none has
	ReportedAt *int64  `json:"reported_at"`
	Waiting    *string `json:"waiting"` // why no further line is started
	Reason     *string `json:"reason"`  // why the batch ended early
	// why the ordering policy can't rank the batch, which goes last
	RankError *string `json:"rank_error"`
	// the most frequent causes of failed lines, the first one first
	Failures []store.Failure `json:"failures"`
	Models   []batchModel    `json:"models"`
	Inputs   []string        `json:"input_file_ids"`
	// the objects that were imported as the inputs
	InputURL *string `json:"input_url"`
	// null: the request names no bucket for the results
	Output  *batchDelivery `json:"output"`
	Outputs []batchOutput  `json:"outputs"`
	RetryOf *string        `json:"retry_of"`
	// the `tidefill` object of the create request, unchanged
	Options json.RawMessage `json:"options"`
	// the members of options that are not in this answer; null: none
	Omitted []string `json:"options_omitted"`
}

// batchDelivery says where the results are delivered, and whether they are there.
type batchDelivery struct {
	URL       string  `json:"url"`
	Delivered bool    `json:"delivered"`
	Error     *string `json:"error"` // why they never will be
}

type batchModel struct {
	Model string `json:"model"`
	Lines int    `json:"lines"`
}

// batchOutput is a pair of result files. InputFileID is null if they cover all inputs.
type batchOutput struct {
	InputFileID  *string `json:"input_file_id"`
	OutputFileID *string `json:"output_file_id"`
	ErrorFileID  *string `json:"error_file_id"`
}

// waitingPaused is the value of waiting for a paused batch. It must equal the text of plan.Paused,
// which dispatchers report later than the API knows of the pause.
const waitingPaused = "paused: Somebody paused the batch. Resume it: tidefill batch resume."

// showBatch returns b in OpenAI's format, with the progress that dispatchers reported last.
func showBatch(b store.Batch, p store.Progress, now time.Time) batchObject {
	o := batchObject{
		ID:               b.ID,
		Object:           "batch",
		Endpoint:         b.Endpoint,
		Errors:           showFaults(b.Errors),
		InputFileID:      b.Inputs[0].FileID,
		CompletionWindow: b.Window,
		Status:           b.State,
		CreatedAt:        b.CreatedAt.Unix(),
		InProgressAt:     orNullTime(b.InProgressAt),
		ExpiresAt:        orNullTime(b.Deadline),
		FinalizingAt:     orNullTime(b.FinalizingAt),
		CompletedAt:      orNullTime(b.CompletedAt),
		FailedAt:         orNullTime(b.FailedAt),
		ExpiredAt:        orNullTime(b.ExpiredAt),
		CancellingAt:     orNullTime(b.CancellingAt),
		CancelledAt:      orNullTime(b.CancelledAt),
		RequestCounts:    requestCounts(b.Counts),
		Usage:            showUsage(b.Usage),
		Metadata:         b.Metadata,
		Tidefill:         showDetails(b),
		Resolved:         showResolved(b),
	}
	if len(b.Models) > 0 {
		o.Model = orNull(b.Models[0].Model)
	}
	// With an output per input these are the first of each kind; tidefill.outputs has all.
	for _, output := range o.Tidefill.Outputs {
		if o.OutputFileID == nil {
			o.OutputFileID = output.OutputFileID
		}
		if o.ErrorFileID == nil {
			o.ErrorFileID = output.ErrorFileID
		}
	}
	if !b.State.Terminal() {
		o.addProgress(b, p, now)
	}
	if total := o.RequestCounts.Total; total > 0 {
		ended := o.RequestCounts.Completed + o.RequestCounts.Failed
		o.Tidefill.Progress = float64(ended) / float64(total)
	}
	return o
}

// overdueForecast is the time for which a batch is expected at any moment after its predicted end.
// By then the dispatcher doubts a prediction of a batch that gets nothing done. The rate of a
// moment, which the end comes from otherwise, would have it jump by hours meanwhile.
const overdueForecast = 30 * time.Second

// addProgress sets the fields that only a batch has that has not ended.
func (o *batchObject) addProgress(b store.Batch, p store.Progress, now time.Time) {
	counts, details := &o.RequestCounts, &o.Tidefill
	counts.Completed = min(max(counts.Completed, p.Completed), counts.Total)
	counts.Failed = min(max(counts.Failed, p.Failed), counts.Total-counts.Completed)
	details.Attempts = max(details.Attempts, p.Attempts)
	details.InFlight = p.InFlight
	details.Retrying = p.Retrying
	details.ReportedAt = orNullTime(p.UpdatedAt)
	details.Waiting = orNull(p.Waiting)
	details.RankError = orNull(p.Unranked)
	for _, f := range p.Failures {
		if f.Count > 0 {
			details.Failures = append(details.Failures, f)
		}
	}
	// Neither what was said before the pause nor what was to come holds any more.
	if b.Paused {
		details.Waiting = orNull(waitingPaused)
		return
	}
	details.Rate = shownRate(p.LinesPerSecond)
	if b.State == store.Cancelling {
		return
	}
	details.forecast = showForecast(p.Forecast)
	if finish := p.Forecast.Finish; now.Sub(finish) < overdueForecast {
		details.ETA = orNullTime(later(finish, now))
		return
	}
	left := counts.Total - counts.Completed - counts.Failed
	if seconds := float64(left) / p.LinesPerSecond; b.State == store.InProgress &&
		p.LinesPerSecond > 0 && seconds < maxInt32 {
		eta := now.Unix() + int64(math.Ceil(seconds))
		details.ETA = &eta
	}
}

// shownRate rounds a rate to three significant digits: it is a measurement of some seconds.
func shownRate(rate float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 3, 64), 64) // its own format
	return rounded
}

func showDetails(b store.Batch) batchDetails {
	d := batchDetails{
		Tenant:        b.Tenant,
		Paused:        b.Paused,
		Deadline:      orNullTime(b.Deadline),
		StartBy:       orNullTime(b.StartBy),
		StartByMissed: b.StartMissed,
		Priority:      b.Options.Priority,
		Attempts:      b.Attempts,
		NotRun:        b.NotRun,
		Reason:        orNull(b.Reason),
		Failures:      append([]store.Failure{}, b.Failures...),
		Models:        make([]batchModel, len(b.Models)),
		Inputs:        make([]string, len(b.Inputs)),
		InputURL:      orNull(b.Options.InputURL),
		Outputs:       []batchOutput{},
		RetryOf:       orNull(b.Options.RetryOf),
		Options:       b.OptionsJSON,
		Omitted:       b.Apart,
	}
	if url := b.Options.OutputURL; url != "" {
		d.Output = &batchDelivery{URL: url}
		if at := b.Delivery; at != nil {
			d.Output.Delivered, d.Output.Error = at.Delivered, orNull(at.Error)
		}
	}
	for i, m := range b.Models {
		d.Models[i] = batchModel(m)
	}
	for i, input := range b.Inputs {
		d.Inputs[i] = input.FileID
	}
	for _, output := range b.Outputs {
		if !output.HasOutput && !output.HasErrors {
			continue
		}
		var shown batchOutput
		if output.Input >= 0 {
			shown.InputFileID = &d.Inputs[output.Input]
		}
		if output.HasOutput {
			shown.OutputFileID = &output.OutputID
		}
		if output.HasErrors {
			shown.ErrorFileID = &output.ErrorID
		}
		d.Outputs = append(d.Outputs, shown)
	}
	return d
}

func showFaults(faults []batchfile.Fault) *batchErrors {
	if len(faults) == 0 {
		return nil
	}
	shown := &batchErrors{Object: "list", Data: make([]batchError, len(faults))}
	for i, f := range faults {
		shown.Data[i] = batchError{Code: f.Code, Message: f.Message, Param: orNull(f.Param)}
		if f.Line > 0 {
			shown.Data[i].Line = &f.Line
		}
	}
	return shown
}

func showUsage(u *batchfile.Usage) *batchUsage {
	if u == nil {
		return nil
	}
	shown := &batchUsage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		TotalTokens: u.TotalTokens}
	shown.InputTokensDetails.CachedTokens = u.CachedTokens
	shown.OutputTokensDetails.ReasoningTokens = u.ReasoningTokens
	return shown
}

// show returns batches in OpenAI's format. It reads the progress of those that have not ended in
// one call.
func (s *Server) show(ctx context.Context, batches ...store.Batch) ([]batchObject, error) {
	var active []string
	for _, b := range batches {
		if !b.State.Terminal() {
			active = append(active, b.ID)
		}
	}
	var progress map[string]store.Progress
	if len(active) > 0 {
		var err error
		if progress, err = store.ReadProgress(ctx, s.deps.Progress, s.meta, active,
			s.deps.Silent); err != nil {
			return nil, fmt.Errorf("read progress: %w", err)
		}
	}
	now := s.now()
	shown := make([]batchObject, len(batches))
	for i, b := range batches {
		p := s.shownCounts.raise(b, progress[b.ID])
		if p.Forecast == (store.Forecast{}) {
			p.Forecast = s.predictions.of(b.ID, now)
		}
		if why := s.notLed(b); why != "" {
			p.Waiting = why
		}
		shown[i] = showBatch(b, p, now)
	}
	return shown, nil
}

// notLed returns why no process works on a batch that has not ended; empty: one does, as far as is
// known.
func (s *Server) notLed(b store.Batch) string {
	if b.State.Terminal() || s.deps.NotLed == nil {
		return ""
	}
	models := make([]string, len(b.Models))
	for i, m := range b.Models {
		models[i] = m.Model
	}
	return s.deps.NotLed(models)
}

// options returns the complete `tidefill` object of a batch as the user sent it; nil: there was
// none.
func (s *Server) options(ctx context.Context, b store.Batch) (json.RawMessage, error) {
	if len(b.Apart) == 0 {
		return b.OptionsJSON, nil
	}
	parameters, err := s.meta.Parameters(ctx, b.ID)
	if err != nil {
		return nil, fmt.Errorf("read options of batch %s: %w", b.ID, err)
	}
	return parameters.OptionsJSON, nil
}

// writeBatch answers with one batch and all of its options.
func (s *Server) writeBatch(ctx context.Context, w http.ResponseWriter, b store.Batch) error {
	options, err := s.options(ctx, b)
	if err != nil {
		return err
	}
	b.OptionsJSON, b.Apart = options, nil
	shown, err := s.show(ctx, b)
	if err == nil {
		err = s.addForAdmins(ctx, shown[0].Resolved, b)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, shown[0])
}
