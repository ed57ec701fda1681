package telemetry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// scrapers are the labels that distinguish who has scraped a target: a job of Prometheus, or one of
// several Prometheus behind Thanos.
var scrapers = Labels{"job", "prometheus", "prometheus_replica"}

// scrapedTarget is a process that is scraped.
type scrapedTarget struct{ runner, instance, pod model.LabelValue }

// scraped is what one scraper has of a target.
type scraped struct {
	by    string
	names map[model.LabelValue]bool // of its metrics
}

// scrapedOnce returns the series of one scraper for each target, because the series of a runner are
// added up. All are of one scraper, so that they are of one scrape. It is the one with the most
// metrics, because a job may keep a few of a process that another job reads in full; among equals,
// the first by name, so that the same one is used each time. Only a host and port identify a
// process for sure: targets whose instance is something else are all kept, as are those with
// several pods.
func scrapedOnce(all model.Vector, runner model.LabelName) (once model.Vector) {
	used := map[scrapedTarget]string{}
	for target, of := range scrapersOf(all, runner) {
		used[target] = slices.MinFunc(of, func(a, b scraped) int {
			return cmp.Or(len(b.names)-len(a.names), strings.Compare(a.by, b.by))
		}).by
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

// scrapersOf returns what each scraper has of each target.
func scrapersOf(all model.Vector, runner model.LabelName) map[scrapedTarget][]scraped {
	found := map[scrapedTarget][]scraped{}
	for _, s := range all {
		target, by := targetOf(s.Metric, runner), scraperOf(s.Metric)
		i := slices.IndexFunc(found[target], func(known scraped) bool { return known.by == by })
		if i < 0 {
			i = len(found[target])
			found[target] = append(found[target], scraped{by, map[model.LabelValue]bool{}})
		}
		found[target][i].names[s.Metric[model.MetricNameLabel]] = true
	}
	return found
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
