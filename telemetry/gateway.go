package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
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

// gateway asks a Prometheus how long interactive requests take.
type gateway struct {
	cfg    Prometheus
	slo    flowcontrol.SLO
	client *http.Client
	header http.Header
	log    *slog.Logger
	chosen map[string]string // by what is asked for: the selector that knew something last
}

// attained is one model's share of a histogram.
type attained struct {
	flowcontrol.Attainment
	sampled time.Time
	buckets []flowcontrol.Bucket
}

func (g *gateway) look(ctx context.Context) ([]Look, error) {
	ttft, err := g.histogram(ctx, "ttft", g.cfg.TTFT, g.slo.TTFT)
	if err != nil {
		return nil, err
	}
	tpot, err := g.histogram(ctx, "tpot", g.cfg.TPOT, g.slo.TPOT)
	if err != nil {
		return nil, err
	}
	var looks []Look
	for _, m := range modelsOf(ttft, tpot) {
		first, inFirst := ttft[m]
		each, inEach := tpot[m]
		sampled := first.sampled
		if !inFirst || inEach && each.sampled.Before(sampled) {
			sampled = each.sampled
		}
		r := flowcontrol.NoReading(flowcontrol.Gateway, sampled)
		if inFirst {
			r.TTFT = first.Attainment
		}
		if inEach {
			r.TPOT = each.Attainment
		}
		looks = append(looks, Look{Model: m, Reading: &r, TTFT: first.buckets, TPOT: each.buckets})
	}
	return looks, nil
}

// modelsOf are the models that either knows, sorted.
func modelsOf(a, b map[string]attained) (models []string) {
	for m := range a {
		models = append(models, m)
	}
	for m := range b {
		models = append(models, m)
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// histogram asks for the first of the selectors that knows any request, by model.
func (g *gateway) histogram(
	ctx context.Context, what string, selectors []string, limit time.Duration,
) (map[string]attained, error) {
	for _, text := range selectors {
		s, err := parseSelector(text)
		if err != nil {
			return nil, err
		}
		buckets, err := g.query(ctx, fmt.Sprintf("sum by (le%s) (%s)", g.also(),
			s.query("_bucket")))
		if err != nil {
			return nil, err
		}
		if len(buckets) == 0 {
			continue
		}
		// The oldest series speaks for the sum. A target that is gone takes its series along.
		times, err := g.query(ctx, fmt.Sprintf("min by (%s) (timestamp(%s))", g.cfg.ModelLabel,
			s.query("_bucket", `le="+Inf"`)))
		if err != nil {
			return nil, err
		}
		if g.chosen[what] != text {
			g.chosen[what] = text
			g.log.InfoContext(ctx, "reading interactive latencies", what, text, "limit", limit,
				"prometheus", g.cfg.URL)
		}
		return g.attain(buckets, times, limit), nil
	}
	if chosen, told := g.chosen[what]; len(selectors) > 0 && (!told || chosen != "") {
		g.chosen[what] = ""
		g.log.WarnContext(ctx, "Prometheus knows no interactive latencies; see readings.prometheus",
			what, selectors, "prometheus", g.cfg.URL)
	}
	return nil, nil
}

// also is the model's label behind another.
func (g *gateway) also() string {
	if g.cfg.ModelLabel == "" {
		return ""
	}
	return ", " + g.cfg.ModelLabel
}

// attain reads the histograms of all models.
func (g *gateway) attain(buckets, times model.Vector, limit time.Duration) map[string]attained {
	label := model.LabelName(g.cfg.ModelLabel)
	sampled := map[string]time.Time{}
	for _, s := range times {
		if seconds := float64(s.Value); seconds > 0 && seconds < math.MaxInt32 {
			sampled[string(s.Metric[label])] = time.UnixMilli(int64(seconds * 1000))
		}
	}
	byModel := map[string][]flowcontrol.Bucket{}
	for _, s := range buckets {
		if upper, err := strconv.ParseFloat(string(s.Metric["le"]), 64); err == nil {
			m := string(s.Metric[label])
			byModel[m] = append(byModel[m], flowcontrol.Bucket{Upper: upper, Count: float64(
				s.Value)})
		}
	}
	all := map[string]attained{}
	for m, h := range byModel {
		at, known := sampled[m]
		slices.SortFunc(h, func(a, b flowcontrol.Bucket) int {
			return cmp.Compare(a.Upper, b.Upper)
		})
		if a := flowcontrol.Attained(h, limit.Seconds()); known && !math.IsNaN(a.Requests) {
			all[m] = attained{a, at, h}
		}
	}
	return all
}

// query evaluates an expression now.
func (g *gateway) query(ctx context.Context, expression string) (model.Vector, error) {
	target := strings.TrimSuffix(g.cfg.URL, "/") + "/api/v1/query"
	form := url.Values{"query": {expression}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target,
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, g.header)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := g.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", target, err)
	}
	defer answer.Body.Close()
	var told struct {
		Status string
		Error  string
		Data   struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		}
	}
	body := http.MaxBytesReader(nil, answer.Body, largestPage)
	if err := json.NewDecoder(body).Decode(&told); err != nil {
		return nil, fmt.Errorf("query %s: status %d, and no answer of Prometheus: %w", target,
			answer.StatusCode, err)
	}
	if told.Status != "success" {
		return nil, fmt.Errorf("query %s: %s: %s", target, expression, told.Error)
	}
	var v model.Vector
	if err := json.Unmarshal(told.Data.Result, &v); err != nil || told.Data.ResultType != "vector" {
		return nil, fmt.Errorf("query %s: %s: the answer is a %s, want a vector: %w", target,
			expression, told.Data.ResultType, err)
	}
	return v, nil
}
