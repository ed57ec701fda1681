package api

import "testing"

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	digits := map[rune]int{}
	for range 10_000 {
		id := newID("file-")
		if len(id) != 29 || seen[id] {
			t.Fatalf("got id %q, want a new one of 29 letters", id)
		}
		seen[id] = true
		for _, c := range id[5:] {
			digits[c]++
		}
	}
	for c, n := range digits { // 3,871 expected, with a standard deviation of 62
		if n < 3_400 || n > 4_350 {
			t.Errorf("the digit %c occurs %d times in 240,000", c, n)
		}
	}
	if len(digits) != 62 {
		t.Errorf("got %d digits, want 62", len(digits))
	}
}
