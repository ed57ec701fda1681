package telemetry

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

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
	at    time.Time                 // of the scrape; zero: it has no metric of an engine
}

// usedScrapers are the scrapers whose series of a target are used, because the series of a runner
// are added up. All series of a target are of one, so that they are of one scrape.
type usedScrapers struct{ last, now map[scrapedTarget]string } // of the last read and of this one

// fresher is the time by which the scrape of another scraper must be newer for it to take the place
// of the one used before. Clocks of several Prometheus differ. One that is taken for newer by less
// may have scraped before, so that counters would seem to jump back.
const fresher = 5 * time.Second

// begin begins a read, and forgets targets that are gone.
func (u *usedScrapers) begin() { u.last, u.now = u.now, map[scrapedTarget]string{} }

// once returns the series of one scraper for each target, and the time at which each runner was
// scraped, the oldest of its targets. stamps are the times of the scrapes by scrapeLabels. Only a
// host and port identify a process for sure: of targets whose instance is something else all series
// are kept, as are those of several pods.
func (u *usedScrapers) once(
	all, stamps model.Vector, runner model.LabelName,
) (once model.Vector, times map[string]time.Time) {
	for target, of := range scrapersOf(all, stamps, runner) {
		u.now[target] = u.choose(target, of)
	}
	uses := func(series model.Metric) bool {
		target := targetOf(series, runner)
		return scraperOf(series) == u.now[target] ||
			!strings.Contains(string(target.instance), ":")
	}
	for _, s := range all {
		if uses(s.Metric) {
			once = append(once, s)
		}
	}
	times = map[string]time.Time{}
	for _, s := range stamps {
		at, value := timeOf(s), string(s.Metric[runner])
		if before, known := times[value]; uses(s.Metric) && !at.IsZero() &&
			(!known || at.Before(before)) {
			times[value] = at
		}
	}
	return once, times
}

// choose returns the scraper of a target: one that knows when it was scraped, with the most
// metrics, because a job may keep a few of a process that another job reads in full. Among equals
// it is the one used before, if no other is fresher, or else the one with the newest scrape, and of
// several the first by name.
func (u *usedScrapers) choose(target scrapedTarget, of []scraped) string {
	better := func(a, b scraped) int {
		if a.at.IsZero() != b.at.IsZero() {
			return b.at.Compare(a.at)
		}
		return len(b.names) - len(a.names)
	}
	best := slices.MinFunc(of, func(a, b scraped) int {
		return cmp.Or(better(a, b), b.at.Compare(a.at), strings.Compare(a.by, b.by))
	})
	for _, s := range of {
		if s.by == u.last[target] && better(s, best) == 0 && best.at.Sub(s.at) <= fresher {
			return s.by
		}
	}
	return best.by
}

// scrapersOf returns what each scraper has of each target.
func scrapersOf(all, stamps model.Vector, runner model.LabelName) map[scrapedTarget][]scraped {
	found := map[scrapedTarget][]scraped{}
	of := func(series model.Metric) *scraped {
		target, by := targetOf(series, runner), scraperOf(series)
		i := slices.IndexFunc(found[target], func(known scraped) bool { return known.by == by })
		if i < 0 {
			i = len(found[target])
			found[target] = append(found[target],
				scraped{by: by, names: map[model.LabelValue]bool{}})
		}
		return &found[target][i]
	}
	for _, s := range all {
		of(s.Metric).names[s.Metric[model.MetricNameLabel]] = true
	}
	for _, s := range stamps {
		of(s.Metric).at = timeOf(s)
	}
	return found
}

// timeOf returns the time that is the value of a sample; zero: it is none.
func timeOf(s *model.Sample) (at time.Time) {
	if seconds := float64(s.Value); seconds > 0 && seconds < math.MaxInt32 {
		at = time.UnixMilli(int64(seconds * 1000))
	}
	return at
}

// scrapeLabels returns the labels that a target and its scraper are known by, for a PromQL list.
func scrapeLabels(runner string) string {
	names := append(Labels{model.InstanceLabel, "pod"}, scrapers...)
	return slices.DeleteFunc(names, func(name string) bool { return name == runner }).and(runner)
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
