package dispatch

import (
	"encoding/json"

	"github.com/tidefill/tidefill/store"
)

// editsKey identifies what parameters may depend on: the endpoint and the model of a line.
type editsKey struct{ url, model string }

// edits holds the changes to bodies that a batch asked for, resolved for one url and model.
type edits struct{ defaults, overrides map[string]json.RawMessage }

// allEdits resolves the batch's rules for every url and model of its inputs; empty if there are
// none.
func allEdits(p store.Parameters, inputs []sourceInput) map[editsKey]edits {
	all := map[editsKey]edits{}
	if len(p.Defaults) == 0 && len(p.Overrides) == 0 {
		return all
	}
	for _, in := range inputs {
		for _, url := range in.urls {
			for _, model := range in.models {
				all[editsKey{url, model}] = edits{defaults: parameters(p.Defaults, url, model),
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

func (e edits) none() bool { return len(e.defaults) == 0 && len(e.overrides) == 0 }
