package registry_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

func TestPlace(t *testing.T) {
	pools := registry.New([]registry.Pool{
		{Name: "plain"},
		{Name: "spot", Provider: "ec2", Reclaim: 0.1},
		{Name: "rented", Provider: "ec2"},
		{Name: "own", Provider: "lab", Templates: []string{"large", "small@v2"}},
	}, flowcontrol.Config{})
	large := registry.Key{Name: "large", Version: "v1"}
	small := func(version string) registry.Key {
		return registry.Key{Name: "small", Version: version}
	}
	for _, c := range []struct {
		claim registry.Claim
		want  string // names, "all", or the reason
	}{
		{registry.Claim{}, "all"},
		{registry.Claim{Template: small("v1"), Mode: registry.Shared}, "all"},
		{registry.Claim{Template: small("v1"), Mode: registry.Dedicated}, "no deployment"},
		{registry.Claim{Template: large, Mode: registry.Dedicated}, "[own]"},
		{registry.Claim{Template: large, Mode: registry.Shared}, "[own]"},
		{registry.Claim{Template: small("v2"), Mode: registry.Dedicated}, "[own]"},
		{registry.Claim{NoSpot: true}, "[plain rented own ]"},
		{registry.Claim{Providers: []string{"lab", "ec2"}}, "[own spot rented plain ]"},
		{registry.Claim{Providers: []string{"ec2"}, NoSpot: true}, "[rented plain ]"},
		{registry.Claim{Template: large, Providers: []string{"ec2"}}, "no open pool"},
	} {
		names, why := pools.Place(c.claim)
		got := fmt.Sprint(names)
		switch {
		case why == registry.NoDeployment:
			got = "no deployment"
		case why == registry.NoOpenPool:
			got = "no open pool"
		case names == nil:
			got = "all"
		}
		if got != c.want || why != registry.Placed && (names == nil || len(names) > 0) {
			t.Errorf("%+v: got %s, %v, want %s", c.claim, got, names, c.want)
		}
	}
}

// Runners without a pool belong to no provider, so every profile permits them. If the profile
// permits no pool besides, the batch says that once these runners don't serve it.
func TestPlaceByProvider(t *testing.T) {
	spot := registry.Pool{Name: "a", Provider: "x", Reclaim: 0.5}
	both := []registry.Pool{spot, {Name: "b", Provider: "y"}}
	prefers := func(providers ...string) registry.Claim {
		return registry.Claim{Providers: providers}
	}
	for _, c := range []struct {
		pools []registry.Pool
		claim registry.Claim
		want  []string
		why   registry.Unplaced
	}{
		{both, registry.Claim{}, nil, registry.Placed},
		{both, registry.Claim{NoSpot: true}, []string{"b", ""}, registry.Placed},
		{both, prefers("y", "x"), []string{"b", "a", ""}, registry.Placed},
		{both, prefers("z"), []string{""}, registry.NoOpenPool},
		{[]registry.Pool{spot}, registry.Claim{NoSpot: true}, []string{""}, registry.NoOpenPool},
		{nil, registry.Claim{NoSpot: true}, []string{""}, registry.Placed},
	} {
		names, why := registry.New(c.pools, flowcontrol.DefaultConfig()).Place(c.claim)
		if !slices.Equal(names, c.want) || why != c.why {
			t.Errorf("%d pools, %+v: got %q, %v, want %q, %v", len(c.pools), c.claim, names, why,
				c.want, c.why)
		}
	}
}

func TestModelsOfTemplates(t *testing.T) {
	for _, c := range []struct {
		spec registry.TemplateSpec
		want []string
	}{
		{registry.TemplateSpec{}, []string{"org/m"}},
		{registry.TemplateSpec{Engine: registry.Engine{ServeArgs: []string{"--port", "1",
			"--served-model-name", "a", "b", "--x", "y"}}}, []string{"a", "b"}},
		{registry.TemplateSpec{Engine: registry.Engine{ServeArgs: []string{
			"--served-model-name=a", "--served-model-name=b"}}}, []string{"b"}},
		{registry.TemplateSpec{EngineArgs: registry.EngineArgs{Extra: map[string]any{
			"served_model_name": []any{"a", "b"}}}}, []string{"a", "b"}},
		{registry.TemplateSpec{EngineArgs: registry.EngineArgs{Extra: map[string]any{
			"served-model-name": "a"}}}, []string{"a"}},
	} {
		c.spec.ModelSource.URI = "org/m"
		if got := c.spec.Models(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.spec, got, c.want)
		}
	}
}
