package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/tidefill/tidefill/flowcontrol"
)

// promQuery queries a Prometheus server for the latencies and lengths of interactive requests.
type promQuery struct {
	cfg    Prometheus
	access *access
	log    *slog.Logger
	chosen map[string]string // by the key of selectors: the one that returned data last
	// counted is, by the key of selectors, the last that had counted a request. It stays in use
	// after a restart of the gateway, at which it is at zero again.
	counted map[string]string
	missing map[string]time.Time // by the key of selectors: since when counted has no series
	shown   map[string]bool      // by the key of selectors: one has returned data
	onDrop  func(drop)
}

// modelTimes is the histogram of one model, and when it was true.
type modelTimes struct {
	sampled time.Time
	buckets []flowcontrol.Bucket
}

func newPromQuery(
	cfg Prometheus, access *access, log *slog.Logger, onDrop func(drop),
) *promQuery {
	return &promQuery{cfg: cfg, access: access, log: log, chosen: map[string]string{},
		counted: map[string]string{}, missing: map[string]time.Time{}, shown: map[string]bool{},
		onDrop: onDrop}
}

func (q *promQuery) read(ctx context.Context) ([]Sample, error) {
	ttft, err := q.histogram(ctx, "ttft", q.cfg.TTFT)
	if err != nil {
		return nil, err
	}
	tpot, err := q.histogram(ctx, "tpot", q.cfg.TPOT)
	if err != nil {
		return nil, err
	}
	prompts, err := q.histogram(ctx, "prompt_lengths", q.cfg.PromptLengths)
	if err != nil {
		return nil, err
	}
	answers, err := q.histogram(ctx, "answer_lengths", q.cfg.AnswerLengths)
	if err != nil {
		return nil, err
	}
	var samples []Sample
	for _, m := range modelsOf(ttft, tpot, prompts, answers) {
		r := flowcontrol.NoReading(flowcontrol.Gateway, time.Time{})
		use := func(all map[string]modelTimes) []flowcontrol.Bucket {
			h, known := all[m]
			if known && (r.Sampled.IsZero() || h.sampled.Before(r.Sampled)) {
				r.Sampled = h.sampled
			}
			return h.buckets
		}
		r.FirstTokenTimes, r.TokenTimes = use(ttft), use(tpot)
		r.PromptLengths, r.AnswerLengths = use(prompts), use(answers)
		r.Requests = counted(r.AnswerLengths, r.PromptLengths, r.FirstTokenTimes)
		samples = append(samples,
			Sample{Model: m, Reading: &r, TTFT: r.FirstTokenTimes, TPOT: r.TokenTimes})
	}
	if samples == nil {
		return nil, fmt.Errorf("query %s: %w; check telemetry.prometheus", q.cfg.URL, errNoData)
	}
	return samples, nil
}

// counted returns the number of observations of the first histogram with buckets; NaN: none has
// any.
func counted(histograms ...[]flowcontrol.Bucket) float64 {
	for _, h := range histograms {
		if len(h) > 0 {
			return h[len(h)-1].Count
		}
	}
	return math.NaN()
}

// modelsOf returns the models of all maps, sorted.
func modelsOf(all ...map[string]modelTimes) (models []string) {
	for _, each := range all {
		for m := range each {
			models = append(models, m)
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// histogram queries the first of the selectors that has counted a request, by model, or the first
// that has series if none has. There is none while the one that had counted is missing for a short
// time. name is the key of the selectors.
func (q *promQuery) histogram(
	ctx context.Context, name string, selectors []string,
) (map[string]modelTimes, error) {
	var buckets model.Vector
	text, s, counts := "", selector{}, false
	for _, candidate := range selectors {
		parsed, err := parseSelector(candidate)
		if err != nil {
			return nil, err
		}
		found, err := q.query(ctx, fmt.Sprintf("sum by (%s) (%s)",
			q.cfg.ModelLabel.and("le"), parsed.query("_bucket")))
		if err != nil {
			return nil, err
		}
		// Client libraries show a histogram without labels before it has counted anything.
		if hasCounted(found) {
			q.counted[name] = candidate
		}
		counts = len(found) > 0 && q.counted[name] == candidate
		if counts || len(buckets) == 0 {
			text, s, buckets = candidate, parsed, found
		}
		if counts {
			break
		}
	}
	if q.awaits(name, counts) {
		buckets = nil
	}
	if len(buckets) > 0 {
		// The oldest series gives the time of the sum. Prometheus drops the series of targets that
		// are gone.
		times, err := q.query(ctx, fmt.Sprintf("min by (%s) (timestamp(%s))",
			q.cfg.ModelLabel.and(), s.query("_bucket", `le="+Inf"`)))
		if err != nil {
			return nil, err
		}
		q.shown[name] = true
		if q.chosen[name] != text {
			q.chosen[name] = text
			q.log.InfoContext(ctx, "reading interactive "+whatOf(name), name, text,
				"prometheus", q.cfg.URL)
		}
		return q.byModel(name, buckets, times), nil
	}
	if q.shown[name] {
		q.onDrop(drop{name, faultAbsent})
	}
	if chosen, logged := q.chosen[name]; len(selectors) > 0 && (!logged || chosen != "") {
		q.chosen[name] = ""
		level := slog.LevelWarn
		if whatOf(name) == "lengths" { // not every gateway has them
			level = slog.LevelInfo
		}
		q.log.Log(ctx, level, "Prometheus has no interactive "+whatOf(name)+
			"; check telemetry.prometheus", name, selectors, "prometheus", q.cfg.URL)
	}
	return nil, nil
}

// awaits reports whether the histogram that had counted is expected back. It is missing after a
// failed scrape and while its gateway restarts; if another that has counted nothing took its place,
// all that it has ever counted would be new when it is back. there: it has series.
func (q *promQuery) awaits(name string, there bool) bool {
	if there || q.counted[name] == "" {
		delete(q.missing, name)
		return false
	}
	since, known := q.missing[name]
	if !known {
		since = time.Now()
		q.missing[name] = since
	}
	if time.Since(since) < goneAfter {
		return true
	}
	delete(q.counted, name)
	delete(q.missing, name)
	return false
}

// hasCounted reports whether the buckets of a histogram have counted anything.
func hasCounted(buckets model.Vector) bool {
	return slices.ContainsFunc(buckets, func(s *model.Sample) bool { return s.Value > 0 })
}

// whatOf says what a key of selectors is about.
func whatOf(name string) string {
	if strings.HasSuffix(name, "_lengths") {
		return "lengths"
	}
	return "latencies"
}

// byModel returns the histograms of all models. name is the key of selectors.
func (q *promQuery) byModel(name string, buckets, times model.Vector) map[string]modelTimes {
	sampled := map[string]time.Time{}
	for _, s := range times {
		if at := timeOf(s); !at.IsZero() {
			m := q.cfg.ModelLabel.of(s.Metric)
			if before, known := sampled[m]; !known || at.Before(before) {
				sampled[m] = at
			}
		}
	}
	// Series that differ in a label of the model that is not used are added up.
	byModel := map[string]map[float64]float64{}
	for _, s := range buckets {
		if upper, err := strconv.ParseFloat(string(s.Metric["le"]), 64); err == nil {
			m := q.cfg.ModelLabel.of(s.Metric)
			if byModel[m] == nil {
				byModel[m] = map[float64]float64{}
			}
			byModel[m][upper] += float64(s.Value)
		}
	}
	all := map[string]modelTimes{}
	for m, counts := range byModel {
		at, known := sampled[m]
		var h []flowcontrol.Bucket
		for _, upper := range slices.Sorted(maps.Keys(counts)) {
			h = append(h, flowcontrol.Bucket{Upper: upper, Count: counts[upper]})
		}
		if of := faultOfBuckets(h); of != "" {
			q.onDrop(drop{name, of})
			continue
		}
		if known {
			all[m] = modelTimes{at, h}
		}
	}
	return all
}

// query evaluates an expression at the current time.
func (q *promQuery) query(ctx context.Context, expression string) (model.Vector, error) {
	return q.queryAt(ctx, 0, expression)
}

// queryAt evaluates an expression at a time by the server's clock. 0: now.
func (q *promQuery) queryAt(
	ctx context.Context, at model.Time, expression string,
) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	target := strings.TrimSuffix(q.cfg.URL, "/") + "/api/v1/query"
	form := url.Values{"query": {expression}}
	if at != 0 {
		form.Set("time", at.String())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target,
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, clean, err := q.access.do(request)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", target, err)
	}
	defer response.Body.Close()
	v, err := parseReply(response)
	if err != nil {
		return nil, fmt.Errorf("query %s: %.120s: %w", target, expression, clean(err))
	}
	return v, nil
}

// largestReply limits the size of an answer of Prometheus, in bytes, after decompression. A sample
// of a sum has about 100, one with all its labels up to 500.
const largestReply = 4 << 20

// parseReply reads the vector that Prometheus answers.
func parseReply(response *http.Response) (model.Vector, error) {
	var reply struct {
		Status string
		Error  string
		Data   struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		}
	}
	body := http.MaxBytesReader(nil, response.Body, largestReply)
	err := json.NewDecoder(body).Decode(&reply)
	var large *http.MaxBytesError
	switch {
	case response.StatusCode == http.StatusUnauthorized ||
		response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("status %d: %w; check the credentials in telemetry.prometheus",
			response.StatusCode, errRefused)
	case errors.As(err, &large):
		return nil, fmt.Errorf("the answer is larger than %d bytes; select fewer series: %w",
			largestReply, errTooLarge)
	case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
		if response.StatusCode != http.StatusOK { // such as the page of a proxy
			return nil, fmt.Errorf("status %d: parse the answer: %w", response.StatusCode, err)
		}
		return nil, fmt.Errorf("parse the answer: %w (%w)", errGarbled, err)
	case err != nil:
		return nil, fmt.Errorf("status %d: read the answer: %w", response.StatusCode, err)
	case reply.Status != "success":
		return nil, fmt.Errorf("status %d: %.500s", response.StatusCode, reply.Error)
	}
	var v model.Vector
	if err := json.Unmarshal(reply.Data.Result, &v); err != nil ||
		reply.Data.ResultType != "vector" {
		return nil, fmt.Errorf("%w: the result is a %.20q, want a vector (%w)", errGarbled,
			reply.Data.ResultType, err)
	}
	return v, nil
}
