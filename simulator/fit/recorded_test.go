package fit

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/recording"
)

// syntheticRecording invents what a daemon would record of an engine with a known cost model: its
// load changes every half minute, prompts arrive at random, and there are readings and reports of
// token gaps about once a second.
func syntheticRecording(costModel costmodel.Model, seed uint64, minutes float64) []recording.Entry {
	rng := rand.New(rand.NewPCG(seed, 0))
	nan := recording.Number(math.NaN())
	var all []recording.Entry
	var at, readAt, reportedAt, loadAt, gapTime, prompts float64
	var decoding, gaps int
	var held, rate float64
	for at < 60*minutes {
		if at >= loadAt {
			loadAt, decoding, held, rate = at+30, 2+rng.IntN(90), 300+2000*rng.Float64(),
				4*rng.Float64()
		}
		w := Work{Decoding: decoding, Context: held * float64(decoding)}
		if rng.Float64() < rate*0.03 {
			w.Chunks, w.Prefill = 1, 300+rng.IntN(900)
			prompts += float64(w.Prefill)
			all = append(all, recording.Entry{At: at, Line: &recording.Line{
				Job: 1, Runner: 1, Prompt: w.Prefill + 16, Cached: 16}})
		}
		took := Observation{Steps: 1, Work: w}.Predict(costModel) / 1000 * math.Exp(
			0.03*rng.NormFloat64())
		at, gaps, gapTime = at+took, gaps+1, gapTime+took
		if at >= readAt {
			readAt = at + 0.95 + 0.1*rng.Float64()
			all = append(all, recording.Entry{At: at + 0.01, Reading: &recording.Reading{
				Source: "metrics", Runner: 1, Age: 0.01, Running: recording.Number(
					decoding), KVUsed: recording.Number(w.Context / 400_000), KVTokens: 400_000,
				PromptTokens: recording.Number(prompts + 16), CachedTokens: 16, Waiting: nan,
			}})
		}
		if at >= reportedAt+1 {
			all = append(all, recording.Entry{At: at + 0.02, Gaps: &recording.Gaps{
				Runner: 1, Count: gaps, Took: gapTime, Lines: decoding}})
			reportedAt, gaps, gapTime = at, 0, 0
		}
	}
	return all
}

func TestRecordingRecoversTheCostModel(t *testing.T) {
	costModel := costmodel.Model{C0: 18, C1: 0.05, C2: 0.09, N0: 64, KV: 0.00006, P1: 0.02}
	for seed := range uint64(3) {
		var r RecordingReader
		for _, e := range syntheticRecording(costModel, seed, 60) {
			r.Add(e)
		}
		obs, err := r.Observations()
		if err != nil {
			t.Fatal(err)
		}
		if obs.Exact < 700 || obs.KVTokens != 400_000 || obs.Runs != 1 {
			t.Errorf("%d observations, %d tokens of KV, %d runs", obs.Exact, obs.KVTokens, obs.Runs)
		}
		got, err := Fit(obs, Options{Resamples: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []Work{
			{Decoding: 4, Context: 4000}, {Decoding: 32, Context: 64_000},
			{Decoding: 80, Context: 40_000}, {Decoding: 80, Context: 160_000},
			{Decoding: 32, Context: 32_000, Prefill: 2048, Chunks: 3},
			{Decoding: 80, Context: 80_000, Prefill: 1000, Chunks: 2},
		} {
			o := Observation{Steps: 1, Work: w}
			limit := 0.04
			if w.Prefill > 0 {
				limit = 0.15 // when within its second a prompt was computed isn't seen
			}
			if off := o.Predict(got.CostModel)/o.Predict(costModel) - 1; math.Abs(off) > limit {
				t.Errorf("seed %d: %+v is off by %.1f %%: fitted %+v", seed, w, 100*off,
					got.CostModel)
			}
		}
	}
}

func TestWhatARecordingDoesNotShow(t *testing.T) {
	var r RecordingReader
	if _, err := r.Observations(); err == nil || !strings.Contains(err.Error(), "no token gaps") {
		t.Errorf("nothing: %v", err)
	}
	all := syntheticRecording(costmodel.Model{C0: 20, C1: 0.1}, 1, 5)
	for _, e := range all {
		if e.Gaps != nil {
			r.Add(e)
		}
	}
	if _, err := r.Observations(); err == nil || !strings.Contains(err.Error(), "no reading") {
		t.Errorf("no readings: %v", err)
	}
	// An hour without readings, a stuck source and a restart cost what they hide, and no more.
	r = RecordingReader{}
	stuck := *all[0].Reading
	for i, e := range all {
		if e.Reading != nil {
			copied := *e.Reading
			switch {
			case e.At > 60 && e.At < 120:
				continue
			case e.At > 120 && e.At < 180:
				copied = stuck
				copied.Age = recording.Number(e.At)
			case e.At > 180:
				copied.PromptTokens -= all[i].Reading.PromptTokens / 2
			}
			e.Reading = &copied
		}
		r.Add(e)
	}
	obs, err := r.Observations()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range obs.All {
		if at := float64(o.At) / 1e6; at > 60 && at < 175 {
			t.Errorf("an observation at %v s, which nobody saw", at)
		}
		if o.Work.Prefill < 0 {
			t.Errorf("%+v", o)
		}
	}
	if obs.Exact < 30 {
		t.Errorf("%d observations of three minutes that were seen", obs.Exact)
	}
}
