package segments_test

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/store/segments"
)

func TestKeysSortAsTheirNames(t *testing.T) {
	keys := rapid.Custom(func(t *rapid.T) segments.Key {
		return segments.Key{Stamp: segments.Stamp(rapid.Int64Range(0, 1<<55).Draw(t, "stamp")),
			Process: rapid.Int64Range(0, 1<<39).Draw(t, "process"),
			Count:   rapid.Int64Range(0, 1<<39).Draw(t, "count")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys.Draw(t, "a"), keys.Draw(t, "b")
		if again, err := segments.ParseKey(a.String()); err != nil || again != a {
			t.Fatalf("parsed %v as %v, %v", a, again, err)
		}
		if got, want := cmp.Compare(a.String(), b.String()), a.Compare(b); got != want {
			t.Fatalf("names %v and %v compare as %d, keys as %d", a, b, got, want)
		}
	})
}

func TestOtherNamesAreNoKeys(t *testing.T) {
	good := segments.Key{Stamp: 0xabc, Process: 1, Count: 2}.String()
	for _, name := range []string{"", "x", good[1:], good + "0", "G" + good[1:],
		good[:14] + "_" + good[15:], "00000000000ABC" + good[14:], "-" + good[1:]} {
		if key, err := segments.ParseKey(name); err == nil {
			t.Errorf("parsed %q as %v", name, key)
		}
	}
}
