package telemetry

import (
	"strings"

	"github.com/prometheus/common/model"
)

// scrapers are the labels that distinguish who has scraped a target: a job of Prometheus, or one of
// several Prometheus behind Thanos.
var scrapers = Labels{"job", "prometheus", "prometheus_replica"}

// scrapedTarget is a process that is scraped.
type scrapedTarget struct{ runner, instance, pod model.LabelValue }

// scrapedOnce returns the series of one scraper for each target, because the series of a runner are
// added up. The scraper is the first by name, so that the same one is used each time. Only a host
// and port identify a process for sure: targets whose instance is something else are all kept, as
// are those with several pods.
func scrapedOnce(all model.Vector, runner model.LabelName) (once model.Vector) {
	used := map[scrapedTarget]string{}
	for _, s := range all {
		target, by := targetOf(s.Metric, runner), scraperOf(s.Metric)
		if before, known := used[target]; !known || by < before {
			used[target] = by
		}
	}
	for _, s := range all {
		target := targetOf(s.Metric, runner)
		if scraperOf(s.Metric) == used[target] ||
			!strings.Contains(string(target.instance), ":") {
			once = append(once, s)
		}
	}
	return once
}

func targetOf(series model.Metric, runner model.LabelName) scrapedTarget {
	return scrapedTarget{series[runner], series[model.InstanceLabel], series["pod"]}
}

func scraperOf(series model.Metric) string {
	values := make([]string, len(scrapers))
	for i, name := range scrapers {
		values[i] = string(series[model.LabelName(name)])
	}
	return strings.Join(values, "\x00")
}
