package work

import (
	"encoding/json"
	"maps"

	"github.com/tidefill/tidefill/store"
)

// editsKey identifies what parameters may depend on: the endpoint and the model of a line.
type editsKey struct{ URL, Model string }

// Edits holds the changes to bodies that a batch asked for, resolved for one endpoint and model.
type Edits struct{ defaults, overrides map[string]json.RawMessage }

// allEdits resolves the batch's rules for every endpoint and model of its inputs; empty if there
// are none.
func allEdits(p store.Parameters, inputs []sourceInput) map[editsKey]Edits {
	all := map[editsKey]Edits{}
	if len(p.Defaults) == 0 && len(p.Overrides) == 0 {
		return all
	}
	for _, in := range inputs {
		for _, url := range in.urls {
			for _, model := range in.models {
				all[editsKey{url, model}] = Edits{defaults: parameters(p.Defaults, url, model),
					overrides: parameters(p.Overrides, url, model)}
			}
		}
	}
	return all
}

// parameters joins the rules that apply. A later rule wins; the narrower rules are later.
func parameters(rules []store.ParameterRule, url, model string) map[string]json.RawMessage {
	var joined map[string]json.RawMessage
	for _, rule := range rules {
		if (rule.URL != "" && rule.URL != url) || (rule.Model != "" && rule.Model != model) {
			continue
		}
		if joined == nil {
			joined = map[string]json.RawMessage{}
		}
		for key, value := range rule.Parameters {
			joined[key] = value
		}
	}
	return joined
}

// Overriding returns the edits with further overrides.
func (e Edits) Overriding(members map[string]string) Edits {
	e.overrides = maps.Clone(e.overrides)
	if e.overrides == nil {
		e.overrides = map[string]json.RawMessage{}
	}
	for name, value := range members {
		e.overrides[name] = json.RawMessage(value)
	}
	return e
}

// Defaulting returns the edits with a further default.
func (e Edits) Defaulting(member string, value json.RawMessage) Edits {
	e.defaults = maps.Clone(e.defaults)
	if e.defaults == nil {
		e.defaults = map[string]json.RawMessage{}
	}
	e.defaults[member] = value
	return e
}

func (e Edits) none() bool { return len(e.defaults) == 0 && len(e.overrides) == 0 }

// HaveAny reports whether the edits add a member with a name that is among those.
func (e Edits) HaveAny(among func(name string) bool) bool {
	for _, added := range []map[string]json.RawMessage{e.defaults, e.overrides} {
		for name := range added {
			if among(name) {
				return true
			}
		}
	}
	return false
}

// Names reports whether the edits set a member.
func (e Edits) Names(member string) bool {
	return e.defaults[member] != nil || e.overrides[member] != nil
}
