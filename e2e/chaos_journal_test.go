package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Journals are damaged in several ways while the daemon is down. Lines whose results are lost run
// again.
func TestChaosDamagedJournals(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	damages := map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:random.IntN(len(b)+1)] },
		"emptied": func([]byte) []byte { return nil },
		"a bit flipped": func(b []byte) []byte {
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			return b
		},
		"a stretch blank": func(b []byte) []byte {
			at := random.IntN(len(b))
			clear(b[at:min(len(b), at+300)])
			return b
		},
		"garbage at the end": func(b []byte) []byte {
			return append(b, bytes.Repeat([]byte{byte(random.Uint32())}, 1+random.IntN(5000))...)
		},
		"a frame's copy at the end": func(b []byte) []byte { return append(b, b[len(b)/2:]...) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			tr := begin(t, "journals damaged: "+name)
			stub := NewStub(t, "m")
			stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 20*time.Millisecond
			d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small}))
			c := d.Client()
			for range sized(1, 20) {
				lines := NewLines(fmt.Sprintf("%s-%d", name, tr.Tried), "m", 200)
				b := c.Submit(t, lines.Content, "")
				for _, done := range []int{40, 120} {
					tr.Tried++
					c.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
						return b.RequestCounts.Completed >= done
					})
					d.Kill()
					damageJournals(t, random, filepath.Join(d.Data, "journals", b.ID), damage)
					d.Start()
					d.AwaitReady()
				}
				b = c.AwaitEnd(t, b.ID, 20*time.Second)
				sum := c.CheckOnce(t, b, lines)
				tr.Lost += sum.Lost
				tr.Doubled += sum.Doubled
				c.CheckComplete(t, b, lines)
				d.Verify(t, b.ID)
			}
			tr.Resent = stub.Repeats()
		})
	}
}

// damageJournals damages half of the journals of a batch.
func damageJournals(t *testing.T, random *rand.Rand, dir string, damage func([]byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no journals in %s, %v", dir, err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) == 0 || random.IntN(2) == 0 {
			continue
		}
		if err := os.WriteFile(name, damage(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
}
