package dispatch_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
)

// Dispatchers with the same upstreams lead as many pools each, whoever starts and ends, and every
// line is sent once.
func TestDispatchersShareThePools(t *testing.T) {
	const pools = 12
	w := newWorld(t)
	var urls, models []string
	upstreams := make([]*upstream, pools)
	for i := range pools {
		models = append(models, fmt.Sprint("m", i))
		upstreams[i] = serve(t, slowly(100*time.Millisecond), models[i])
		urls = append(urls, upstreams[i].URL)
	}
	settings := func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.LeaseTTL, cfg.ChunkLines, cfg.Plan.LookAhead = 3*time.Second, 50, 50
		deps.Registry = fixedLines(4)
	}
	led := func() map[string]int {
		var names []string
		for _, m := range models {
			names = append(names, "model/"+m)
		}
		leaders, err := w.meta.Leaders(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, node := range leaders {
			n[node]++
		}
		return n
	}
	awaitShares := func(want map[string]int) {
		t.Helper()
		limit := time.Now().Add(30 * time.Second)
		for !maps.Equal(led(), want) {
			if time.Now().After(limit) {
				t.Fatalf("the dispatchers lead %v, want %v", led(), want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	batches := make([]string, pools)
	for i, m := range models {
		batches[i] = w.submit(chatLines(800, m), nil)
	}
	_, stopA := w.dispatcher("a", settings, urls...)
	awaitShares(map[string]int{"a": 12})
	w.dispatcher("b", settings, urls...)
	w.dispatcher("c", settings, urls...)
	awaitShares(map[string]int{"a": 4, "b": 4, "c": 4})
	stopA()
	awaitShares(map[string]int{"b": 6, "c": 6})
	for i, id := range batches {
		if b := w.awaitEnd(id); b.Counts.Completed != 800 {
			t.Errorf("%s: got %s, %+v", models[i], b.State, b.Counts)
		}
		w.results(id)
		u := upstreams[i]
		u.mu.Lock()
		most := slices.Max(slices.Collect(maps.Values(u.bodies)))
		u.mu.Unlock()
		if most > 1 || u.most > 4 {
			t.Errorf("%s: a line was sent %d times, %d at once", models[i], most, u.most)
		}
	}
}
