package dispatch

import (
	"context"
	"maps"
	"slices"

	"github.com/tidefill/tidefill/dispatch/lead"
)

// catalog answers which models the configured runners serve. It is safe for concurrent use.
type catalog struct {
	settings func() *settings
	leads    lead.Leads
}

// complete reports whether every runner has said since the start of the process which models it
// serves. Before that, one that has not may serve any model.
func (c *catalog) complete() bool { return len(c.unasked()) == 0 }

// unasked lists the runners that have not said yet which models they serve.
func (c *catalog) unasked() (names []string) {
	for name, u := range c.settings().open {
		if !u.HasAnswered() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// served lists the models that the runners list now.
func (c *catalog) served() []string {
	names := map[string]bool{}
	for _, u := range c.settings().open {
		for _, m := range u.Lists() {
			names[m] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// offered lists the models that the runners list now, and those that pools list.
func (c *catalog) offered() []string {
	names := slices.AppendSeq(c.served(), slices.Values(c.settings().Registry.Models()))
	slices.Sort(names)
	return slices.Compact(names)
}

// unserved returns a sentence for each of the models that no runner serves and that none is
// expected to serve: none has listed it since the start of the process, no configuration of a pool
// names it, and no other process leads it. It returns none while that can't be known.
func (c *catalog) unserved(
	ctx context.Context, models []string,
) (sentences map[string]string, err error) {
	now := c.settings()
	if now.WaitForModels || len(now.open)+len(now.Registry.Pools()) == 0 || !c.complete() {
		return nil, nil
	}
	var names []string
	for _, m := range models {
		// A configured pool may have no runner now.
		if !now.Registry.Expects(m) && !c.known(m) {
			names = append(names, lead.ModelName(m))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	leaders, err := c.leads.Leaders(ctx, names)
	if err != nil {
		return nil, err
	}
	offered := c.offered()
	sentences = map[string]string{}
	for _, m := range models {
		if name := lead.ModelName(m); slices.Contains(names, name) && leaders[name] == "" {
			sentences[m] = notServed(m, offered)
		}
	}
	return sentences, nil
}

// known reports whether a runner serves the model, has served it, or takes any.
func (c *catalog) known(model string) bool {
	if c.settings().removedModels[model] {
		return true
	}
	for _, u := range c.settings().open {
		if u.Knows(model) {
			return true
		}
	}
	return false
}

// takesAny reports whether a runner has no list, and is sent what no other lists.
func (c *catalog) takesAny() bool {
	for _, u := range c.settings().open {
		if u.TakesAny() {
			return true
		}
	}
	return false
}

// waiting returns a function that returns why batches wait for a model that has no runner, in
// sentences. The function is for one round over all batches, of which many may wait.
func (c *catalog) waiting() func(model string) string {
	var served, unasked []string
	sentences := map[string]string{}
	first := true
	return func(model string) string {
		if first {
			served, unasked, first = c.served(), c.unasked(), false
		}
		sentence, ok := sentences[model]
		if !ok {
			sentence = c.whyWaiting(model, served, unasked)
			sentences[model] = sentence
		}
		return sentence
	}
}

// notLoaded reports whether a runner knows the model and says that it has not loaded it.
func (c *catalog) notLoaded(model string) bool {
	for _, u := range c.settings().open {
		if u.HasNotLoaded(model) {
			return true
		}
	}
	return false
}

func (c *catalog) whyWaiting(model string, served, unasked []string) string {
	_, lists := slices.BinarySearch(served, model)
	switch {
	case lists && c.notLoaded(model):
		return "model " + shown(model) + " is not loaded by the runners that have it."
	case lists, len(unasked) == 0 && c.takesAny():
		return "no process has taken the lead of model " + shown(model) + " yet."
	case c.settings().Registry.Lists(model) != "":
		return "no replica of pool " + c.settings().Registry.Lists(model) + " is ready. One is " +
			"started when deadlines need it."
	case len(unasked) == 0:
		return notServed(model, served)
	default:
		return notServed(model, served) + " No list of models yet from: " + nameList(unasked) + "."
	}
}
