package simulator

import (
	"flag"
	"testing"
)

var (
	batches = flag.Int("batches", 40, "number of batches that TestForecastBands forecasts")
	firstOf = flag.Uint64("bands-seed", 2001, "first seed of TestForecastBands")
)

// band counts the batches that ended before, within and after their bands.
type band struct{ before, within, after int }

func (b *band) all() int { return b.before + b.within + b.after }

func (b *band) share() float64 { return float64(b.within) / float64(b.all()) }

func (b *band) add(other band) {
	b.before += other.before
	b.within += other.within
	b.after += other.after
}

// count judges the forecasts that were made when batches were submitted. A batch that expires ends
// at its deadline.
func (b *band) count(jobs []Job) {
	for _, j := range jobs {
		ended := j.Finished
		switch {
		case j.Forecast == nil:
			continue
		case j.Outcome == Expired:
			ended = j.Deadline
		case j.Outcome != Finished:
			continue
		}
		switch latest := j.Forecast.Latest; {
		case ended < j.Forecast.Earliest:
			b.before++
		case latest > 0 && ended > latest:
			b.after++
		default:
			b.within++
		}
	}
}

// TestForecastBands submits generated batches to pools of fixed and of scaled size. Four of five
// must end within the bands of the forecasts that were made when they were submitted. The bounds
// were calibrated without these seeds. All kinds of pools take minutes:
//
//	go test ./simulator -run TestForecastBands -v -batches 200
func TestForecastBands(t *testing.T) {
	judgeBands(t, "zero", "fixed", "two", "shared", "chat") // the fastest first
}

// The same holds of upstreams that no pool is configured for, of whose engines nothing is known but
// what they have answered. The default seed had a part in the calibration; docs/designs/scaling.md
// has figures of others.
func TestForecastBandsOfPlainUpstreams(t *testing.T) {
	judgeBands(t, "plain-fixed", "plain-chat", "plain-long")
}

func judgeBands(t *testing.T, files ...string) {
	if testing.Short() {
		t.Skip("left to make test-all: it simulates days")
	}
	least, most := 0.75, 0.90
	if *batches < 200 {
		files, least, most = files[:2], 0.60, 0.98 // of so few, by chance
	}
	var all band
	for _, file := range files {
		var of band
		for seed := *firstOf; of.all() < *batches/len(files); seed++ {
			s := bundled(t, "../testdata/bands/"+file+".yaml", streamed)
			s.Seed = seed
			r, err := RunBatch(s, silent)
			if err != nil {
				t.Fatal(err)
			}
			of.count(r.Jobs)
		}
		t.Logf("%-6s %3d of %3d within the band (%.2f), %d before, %d after", file, of.within,
			of.all(), of.share(), of.before, of.after)
		all.add(of)
	}
	t.Logf("%-6s %3d of %3d within the band (%.2f), %d before, %d after", "all", all.within,
		all.all(), all.share(), all.before, all.after)
	if got := all.share(); got < least || got > most {
		t.Errorf("%.2f of the batches ended within their bands, want %.2f to %.2f", got, least,
			most)
	}
}
