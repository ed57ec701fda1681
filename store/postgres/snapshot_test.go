package postgres

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/store"
)

// TestSnapshotsMissNothing has transactions begin and end in any order, while a reader reads pages
// of what its snapshot does not see. It finds every committed transaction, and none twice within
// the changes that one snapshot sees.
func TestSnapshotsMissNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var next uint64 = 1
		var running, committed []uint64
		found := map[uint64]int{}
		var at snapshot
		now := func() snapshot {
			return snapshot{most: next, running: slices.Clone(running)}
		}
		read := func(limit int) int {
			here := now()
			var page []uint64
			for _, id := range slices.Sorted(slices.Values(committed)) {
				if !sees(at, id) && len(page) < limit {
					page = append(page, id)
				}
			}
			for _, id := range page {
				found[id]++
			}
			if len(page) < limit {
				at = here
			} else {
				at = at.through(page[len(page)-1], here)
			}
			parsed, err := parseSnapshot(at.String())
			if err != nil || parsed.String() != at.String() {
				rt.Fatalf("%v reads back as %v, %v", at, parsed, err)
			}
			return len(page)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { running, next = append(running, next), next+1 },
			"commit": func(rt *rapid.T) {
				if len(running) == 0 {
					rt.Skip("none runs")
				}
				i := rapid.IntRange(0, len(running)-1).Draw(rt, "transaction")
				committed = append(committed, running[i])
				running = slices.Delete(running, i, i+1)
			},
			"read": func(rt *rapid.T) { read(rapid.IntRange(1, 4).Draw(rt, "limit")) },
		})
		for read(3) == 3 {
		}
		for _, id := range committed {
			if found[id] != 1 {
				rt.Fatalf("transaction %d was found %d times, want once", id, found[id])
			}
		}
	})
}

// sees is pg_visible_in_snapshot.
func sees(s snapshot, id uint64) bool { return id < s.most && !slices.Contains(s.running, id) }

func TestBadCursors(t *testing.T) {
	for _, c := range []string{"", "1", "7/1", "7/x/1:1:", "7/1/1:2", "7/1/1:x:", "7/1/1:2:3",
		"7/1/1:9:5,4", "7/1/1:2:1/"} {
		if _, err := parseCursor(store.Cursor(c)); err == nil {
			t.Errorf("cursor %q is accepted", c)
		}
	}
	const good = "7123/2/3:9:3,5"
	c, err := parseCursor(good)
	if err != nil || c.String() != good {
		t.Errorf("cursor %q reads as %v, %v", good, c, err)
	}
}
