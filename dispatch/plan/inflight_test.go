package plan

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// In each iteration an engine produces one token for each line that decodes. Only the gaps of
// streamed lines are reported. The estimated age of a line is never too high.
func TestAgesAreNeverTooHigh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type line struct {
			job    *job
			number uint64
			tokens int64 // tokens
			begun  bool
		}
		var (
			u       inFlightLines
			now     = noon
			jobs    = []*job{{id: "a"}, {id: "b"}, {id: "c"}}
			lines   []*line
			number  uint64
			streams = rapid.SampledFrom([]int{1, 2, 200}).Draw(t, "streams")
			pace    = time.Duration(rapid.IntRange(10, 600).Draw(t, "pace")) * time.Millisecond
			detach  = false
		)
		check := func() {
			for _, j := range jobs {
				truth, count := int64(0), int64(0)
				for _, l := range lines {
					if l.job == j {
						truth += l.tokens
						count++
					}
				}
				if j.ages.tokens > truth || j.ages.lines > count || j.ages.tokens < 0 ||
					j.ages.lines < 0 {
					t.Fatalf("job %s: %d lines with %d tokens, want at most %d and %d", j.id,
						j.ages.lines, j.ages.tokens, count, truth)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				number++
				l := &line{job: rapid.SampledFrom(jobs).Draw(t, "job"), number: number}
				lines = append(lines, l)
				u.add(now, &Start{number: number, job: l.job, Stream: true})
			},
			"iterate": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "reports") {
					gaps, took := 0, time.Duration(0)
					for since := now; now.Sub(since) < GapsInterval; {
						now = now.Add(pace)
						seen := 0
						for _, l := range lines {
							if l.begun && seen < streams {
								seen++
							}
							l.tokens++
							if !l.begun {
								l.begun = true
								u.answered(now, l.number)
							}
						}
						gaps += seen
						took += time.Duration(seen) * pace
					}
					if gaps > 0 && !detach {
						u.tick(now, gaps, took)
					}
					check()
				}
			},
			"end": func(t *rapid.T) {
				if len(lines) == 0 {
					return
				}
				i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
				u.remove(lines[i].number)
				lines = append(lines[:i], lines[i+1:]...)
			},
			"leave": func(t *rapid.T) {
				detach = rapid.IntRange(0, 9).Draw(t, "leaves") == 0
				if detach {
					u.detach()
					for _, j := range jobs {
						if j.ages != (ages{}) {
							t.Fatalf("a runner that is gone still has ages %+v", j.ages)
						}
					}
				}
			},
			"": func(*rapid.T) { check() },
		})
		for len(lines) > 0 {
			u.remove(lines[0].number)
			lines = lines[1:]
		}
		for _, j := range jobs {
			if j.ages != (ages{}) || len(u.decoding) != 0 {
				t.Fatalf("job %s: ages %+v though all lines have ended", j.id, j.ages)
			}
		}
	})
}

// Several streams show the same iterations: their gaps are counted once.
func TestAgesCountIterationsOnce(t *testing.T) {
	for _, streams := range []int{1, 3, 100} {
		var u inFlightLines
		j := &job{id: "j"}
		now := noon
		u.add(now, &Start{number: 1, job: j, Stream: true})
		u.answered(now, 1)
		u.tick(now, 1, 50*time.Millisecond)
		for range 400 {
			now = now.Add(GapsInterval)
			u.tick(now, 5*streams, time.Duration(5*streams)*50*time.Millisecond)
		}
		if want := int64(2000); j.ages.tokens != want {
			t.Errorf("%d streams of 100 s at 50 ms a token: %d tokens, want %d", streams,
				j.ages.tokens, want)
		}
	}
}
