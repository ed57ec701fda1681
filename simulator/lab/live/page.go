package live

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// page is a page of metrics.
type page map[string]*dto.MetricFamily

func readPage(ctx context.Context, url string) (page, error) {
	text, err := fetch(ctx, url)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", url, err)
	}
	return families, nil
}

// sum returns the sum over the series of a gauge or counter that have the given labels, in pairs of
// name and value.
func (p page) sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range p[name].GetMetric() {
		if hasLabels(m, labels) {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}
