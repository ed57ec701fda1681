package keda

import (
	"strings"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
)

// metricName names the metric of a ScaledObject in the HPA, where it is one segment of a URL. It
// follows from the metadata alone, also from metadata with faults: KEDA shows users the errors of
// GetMetrics, but not those of GetMetricSpec, and its fallback needs the name too.
func metricName(ref *externalscaler.ScaledObjectRef) string {
	value := func(key string) string {
		metadata := ref.GetScalerMetadata()
		if text, ok := metadata[key]; ok {
			return strings.TrimSpace(text)
		}
		return strings.TrimSpace(metadata[key+"FromEnv"])
	}
	prefix := "tidefill-replicas-"
	if role(value("role")) == dispatchers {
		prefix = "tidefill-dispatchers-"
	}
	return prefix + segment(value("pool"))
}

// segment returns a text as part of a metric's name. Names of pools are such parts already.
func segment(text string) string {
	const most = 63
	return strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-':
			return c
		case 'A' <= c && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, text[:min(len(text), most)])
}

// target is the replicas that one unit of the metric stands for.
const target = 1

func metricSpec(ref *externalscaler.ScaledObjectRef) *externalscaler.GetMetricSpecResponse {
	// Versions of KEDA before 2.17 read the integer.
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{
		{MetricName: metricName(ref), TargetSize: target, TargetSizeFloat: target}}}
}
