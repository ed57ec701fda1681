package registry

import (
	"slices"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Runners without a pool belong to no provider, so every profile permits them. If the profile
// permits no pool besides, the batch says that once these runners don't serve it.
func TestPlaceByProvider(t *testing.T) {
	spot, steady := Pool{Name: "a", Provider: "x", Reclaim: 0.5}, Pool{Name: "b", Provider: "y"}
	for _, c := range []struct {
		what  string
		pools []Pool
		claim Claim
		want  []string
		why   Unplaced
	}{
		{"any", []Pool{spot, steady}, Claim{}, nil, Placed},
		{"no spot", []Pool{spot, steady}, Claim{NoSpot: true}, []string{"b", ""}, Placed},
		{"y, x", []Pool{spot, steady}, Claim{Providers: []string{"y", "x"}},
			[]string{"b", "a", ""}, Placed},
		{"a provider without a pool", []Pool{spot, steady}, Claim{Providers: []string{"z"}},
			[]string{""}, NoOpenPool},
		{"spot only", []Pool{spot}, Claim{NoSpot: true}, []string{""}, NoOpenPool},
		{"no pools at all", nil, Claim{NoSpot: true}, []string{""}, Placed},
	} {
		names, why := New(c.pools, flowcontrol.DefaultConfig()).Place(c.claim)
		if !slices.Equal(names, c.want) || why != c.why {
			t.Errorf("%s: got %q, %v, want %q, %v", c.what, names, why, c.want, c.why)
		}
	}
}
