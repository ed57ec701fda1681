package scheduler_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/scheduler"
)

func TestOrderLines(t *testing.T) {
	a, b := scheduler.LineKey{Model: 7, Prefix: 1}, scheduler.LineKey{Model: 7, Prefix: 2}
	c, d := scheduler.LineKey{Model: 3, Prefix: 1}, scheduler.LineKey{Model: 3, Prefix: 2}
	lines := []scheduler.LineKey{a, c, b, a, d, c, b, a}
	for _, test := range []struct {
		canary int
		group  scheduler.GroupBy
		want   []uint32
	}{
		{0, scheduler.GroupNone, []uint32{0, 2, 3, 6, 7, 1, 4, 5}},
		{0, scheduler.GroupModel, []uint32{0, 2, 3, 6, 7, 1, 4, 5}},
		{0, scheduler.GroupPrefix, []uint32{0, 3, 7, 2, 6, 1, 5, 4}},
		{3, scheduler.GroupNone, []uint32{0, 2, 1, 3, 6, 7, 4, 5}},
		{3, scheduler.GroupPrefix, []uint32{0, 2, 1, 3, 7, 6, 4, 5}},
		{99, scheduler.GroupPrefix, []uint32{0, 2, 3, 6, 7, 1, 4, 5}},
		{-1, scheduler.GroupNone, []uint32{0, 2, 3, 6, 7, 1, 4, 5}},
	} {
		if diff := gocmp.Diff(test.want, scheduler.OrderLines(lines, test.canary,
			test.group)); diff != "" {
			t.Errorf("canary %d, group %s (-want +got):\n%s", test.canary, test.group, diff)
		}
	}
	if got := scheduler.OrderLines(nil, 5, scheduler.GroupPrefix); len(got) != 0 {
		t.Errorf("no lines: got %v", got)
	}
}

func TestOrderLinesAgreesWithASort(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) scheduler.LineKey {
		return scheduler.LineKey{Model: uint16(rapid.IntRange(0, 3).Draw(t, "model")),
			Prefix: uint64(rapid.IntRange(0, 4).Draw(t, "prefix"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(key).Draw(t, "lines")
		canary := rapid.IntRange(0, 10).Draw(t, "canary")
		group := rapid.SampledFrom([]scheduler.GroupBy{"none", "model", "prefix"}).Draw(t, "group")
		isCanary := func(i uint32) int {
			if int(i) < canary {
				return 0
			}
			return 1
		}
		firstOf := func(i uint32, from int, same func(a, b scheduler.LineKey) bool) int {
			return slices.IndexFunc(lines[from:], func(l scheduler.LineKey) bool {
				return same(l, lines[i])
			})
		}
		model := func(i uint32) int {
			return firstOf(i, 0, func(a, b scheduler.LineKey) bool { return a.Model == b.Model })
		}
		prefix := func(i uint32) int {
			if isCanary(i) == 0 || group != scheduler.GroupPrefix {
				return 0
			}
			return firstOf(i, canary, func(a, b scheduler.LineKey) bool { return a == b })
		}
		var want []uint32
		for i := range lines {
			want = append(want, uint32(i))
		}
		slices.SortFunc(want, func(a, b uint32) int {
			return cmp.Or(isCanary(a)-isCanary(b), model(a)-model(b), prefix(a)-prefix(
				b), cmp.Compare(a, b))
		})
		if got := scheduler.OrderLines(lines, canary, group); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func BenchmarkOrderLines(b *testing.B) {
	lines := make([]scheduler.LineKey, 50_000)
	for i := range lines {
		lines[i] = scheduler.LineKey{Model: uint16(i % 3), Prefix: uint64(i % 500)}
	}
	b.ReportAllocs()
	for b.Loop() {
		scheduler.OrderLines(lines, 50, scheduler.GroupPrefix)
	}
}
