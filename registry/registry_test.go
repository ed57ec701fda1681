package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

func pools() []registry.Pool {
	return []registry.Pool{
		{Name: "day", Models: []string{"m", "chat"}, Max: 3},
		{Name: "night", Models: []string{"m"}, Max: 2, Role: registry.RoleBatch},
	}
}

func TestSnapshotAnswersAboutModels(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	flow.Pools = map[string]flowcontrol.Config{"lora": flowcontrol.DefaultConfig()}
	s := registry.New(pools(), flow)
	for model, want := range map[string]struct {
		pool    string
		expects bool
	}{"m": {"night", true}, "chat": {"day", true}, "lora": {"", true}, "other": {"", false}} {
		if got := s.Lists(model); got != want.pool {
			t.Errorf("the pool of %s is %q, want %q", model, got, want.pool)
		}
		if got := s.Expects(model); got != want.expects {
			t.Errorf("%s is expected: %v", model, got)
		}
	}
	if got := s.Models(); !slices.Equal(got, []string{"chat", "m"}) {
		t.Errorf("models %q", got)
	}
	if got := s.Expected(); !slices.Equal(got, []string{"chat", "lora", "m", "night"}) {
		t.Errorf("expected %q", got)
	}
	if p, found := s.Pool("day"); !found || p.Max != 3 {
		t.Errorf("day: %+v, %v", p, found)
	}
	if _, found := s.Pool("m"); found {
		t.Error("there is a pool m")
	}
}

// Lines fill the engines of a pool for batches alone, whatever is configured for others.
func TestBatchPoolsAreNotShared(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	s := registry.New(pools(), flow)
	if s.Flow("night", []string{"m"}).Shared || !s.Flow("day", []string{"chat", "m"}).Shared {
		t.Error("flow control takes night for shared, or day for not")
	}
	if len(flow.Pools) > 0 {
		t.Error("the configuration that was given has changed")
	}
}

func TestSnapshotKeepsWhatItWasGiven(t *testing.T) {
	given := pools()
	s := registry.New(given, flowcontrol.DefaultConfig())
	given[0].Name = "other"
	if _, found := s.Pool("day"); !found || s.Pools()[0].Name != "day" {
		t.Error("a change of the caller's list has changed the snapshot")
	}
}

func TestPoolsAreValidated(t *testing.T) {
	good := pools()[0]
	if err := good.Validate(); err != nil {
		t.Errorf("a good pool: %v", err)
	}
	for want, change := range map[string]func(*registry.Pool){
		"name: ":       func(p *registry.Pool) { p.Name = "Day" },
		"models: ":     func(p *registry.Pool) { p.Models = nil },
		"models[1]: ":  func(p *registry.Pool) { p.Models = []string{"m", " "} },
		"role: ":       func(p *registry.Pool) { p.Role = "night" },
		"max: ":        func(p *registry.Pool) { p.Min = 4 },
		"price: ":      func(p *registry.Pool) { p.Price = -1 },
		"reclaim: ":    func(p *registry.Pool) { p.Reclaim = 1.5 },
		"cold_start: ": func(p *registry.Pool) { p.ColdStart = -1 },
	} {
		p := pools()[0]
		change(&p)
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want a fault of %s", err, want)
		}
	}
}
