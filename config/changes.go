package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change is a key whose value differs between two configurations.
type Change struct {
	// Path is the path of the key, or upstreams.NAME for one of the upstreams.
	Path string
	// Old and New are the values in YAML's syntax, without secrets. Empty: there is none.
	Old, New string
}

// String returns the change in one row.
func (c Change) String() string {
	switch {
	case c.Old == "":
		return c.Path + ": added " + c.New
	case c.New == "":
		return c.Path + ": removed " + c.Old
	case c.Old == c.New:
		return c.Path + ": another secret"
	}
	return fmt.Sprintf("%s: %s -> %s", c.Path, c.Old, c.New)
}

// Changes are the differences between two configurations.
type Changes struct {
	// Applied are those that a running daemon applies, Restart those that need a restart.
	Applied, Restart []Change
}

// Compare returns what changes from one configuration to another, in the order of the keys. Both
// must be valid.
func Compare(from, to Config) (changes Changes, err error) {
	var encoded [3]*yaml.Node
	for i, c := range []Config{from, from.Running(to), to} {
		if encoded[i], err = encode(reflect.ValueOf(c)); err != nil {
			return Changes{}, fmt.Errorf("compare configurations: %w", err)
		}
	}
	compare("", encoded[0], encoded[1], func(c Change) {
		changes.Applied = append(changes.Applied, c)
	})
	compare("", encoded[1], encoded[2], func(c Change) {
		changes.Restart = append(changes.Restart, c)
	})
	return changes, nil
}

// compare reports the values that differ between two encoded sections, down to single keys. Nil: a
// section does not exist.
func compare(path string, old, next *yaml.Node, report func(Change)) {
	if reflect.DeepEqual(old, next) {
		return
	}
	if path == "upstreams" {
		old, next = upstreamsByName(old), upstreamsByName(next)
	}
	if path == "pools" {
		old, next = poolsByName(old), poolsByName(next)
	}
	if old == nil || next == nil || old.Kind != yaml.MappingNode || next.Kind != yaml.MappingNode {
		report(Change{Path: path, Old: shownValue(path, old), New: shownValue(path, next)})
		return
	}
	for i := 0; i < len(old.Content); i += 2 {
		key := old.Content[i].Value
		compare(join(path, key), old.Content[i+1], valueOf(next, key), report)
	}
	for i := 0; i < len(next.Content); i += 2 {
		if key := next.Content[i].Value; valueOf(old, key) == nil {
			compare(join(path, key), nil, next.Content[i+1], report)
		}
	}
}

// valueOf returns the value of a key in an encoded section; nil: it has none.
func valueOf(section *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(section.Content); i += 2 {
		if section.Content[i].Value == key {
			return section.Content[i+1]
		}
	}
	return nil
}

// upstreamsByName returns the list of upstreams as a section with a key for each, whose value has
// the keys that are set.
func upstreamsByName(list *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, u := range list.Content {
		name := withoutCredentials(valueOf(u, "url").Value)
		if own := valueOf(u, "name"); own.Value != "" {
			name = own.Value
		}
		n.Content = append(n.Content, text(name), keysThatAreSet(u))
	}
	return n
}

// poolsByName returns the list of pools as a section with a key for each.
func poolsByName(list *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range list.Content {
		n.Content = append(n.Content, text(valueOf(p, "name").Value), p)
	}
	return n
}

// keysThatAreSet returns an upstream or a pool without the keys that have no value. All of them
// default to none, but headers: an empty one removes a default.
func keysThatAreSet(section *yaml.Node) *yaml.Node {
	set := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		if value.Kind == yaml.MappingNode && key.Value != "headers" {
			value = keysThatAreSet(value)
		}
		none := slices.Contains([]string{"", "false", "0", "0s"}, value.Value)
		if len(value.Content) > 0 || !none {
			set.Content = append(set.Content, key, value)
		}
	}
	return set
}

func shownValue(path string, n *yaml.Node) string {
	if n == nil {
		return ""
	}
	shown := withoutSecrets(path, n)
	if shown.Kind == yaml.MappingNode && strings.HasPrefix(path, "pools.") {
		shown = keysThatAreSet(shown)
	}
	shown.Style |= yaml.FlowStyle
	out, err := yaml.Marshal(shown)
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// runTimeKeys lists the keys, and the sections of which all keys, that a running daemon applies. A
// section is listed only if the part of the daemon that it configures takes it as a whole.
var runTimeKeys = []string{
	"log.level",
	"auth",
	"upstreams",
	"api.max_batch_file_bytes", "api.max_batch_lines", "api.max_line_bytes", "api.max_file_bytes",
	"api.tenant_quota_bytes", "api.tenant_quotas",
	"api.batch_file_retention", "api.batch_retention",
	"api.max_requests", "api.unknown_models",
	"api.requests_per_minute", "api.admission",
	"inline.max_body_bytes", "inline.memory", "inline.rewrite_model", "inline.cache_salt",
	"inline.max_running", "inline.max_deadline", "inline.policy", "inline.classes",
	"inline.max_waiting", "inline.tenant_weights", "inline.advertise_url",
	"scheduler",
	"flowcontrol",
	"telemetry",
	"dispatch.retry", "dispatch.request_timeout", "dispatch.cancel_grace",
	"dispatch.max_answer_bytes",
	"dispatch.tuning.look_ahead", "dispatch.tuning.breaker", "dispatch.tuning.models_every",
	"shutdown",
	"pools",
	"autoscale",
	"buckets",
}

// restartKeys lists the keys, and the sections of which all keys, that are read only at start:
// addresses and identity, what is open for as long as the process runs, and constants that nobody
// changes twice.
var restartKeys = []string{
	"listen", "admin_listen", "data", "node", "roles", "record",
	"store", "async",
	"log.format",
	"http",
	"tls",
	"api.tuning.orphan_after",
	"inline.enabled",
	"dispatch.memory",
	"dispatch.tuning.cost", "dispatch.tuning.chunk_lines",
	"dispatch.tuning.lease_ttl", "dispatch.tuning.poll_every", "dispatch.tuning.learned_every",
	"dispatch.tuning.progress_every",
	"scaler", "kubernetes", "webhooks", "registry", "tracing",
}

// atRunTime reports whether a running daemon applies a change of the key. mixed reports that it is
// a section with keys of both kinds.
func atRunTime(key string) (applied, mixed bool) {
	if under(runTimeKeys, key) {
		return true, false
	}
	return false, !under(restartKeys, key) &&
		slices.ContainsFunc(runTimeKeys, func(k string) bool {
			return strings.HasPrefix(k, key+".")
		})
}

// under reports whether a key, or a section that contains it, is in a list.
func under(list []string, key string) bool {
	return slices.ContainsFunc(list, func(k string) bool {
		return key == k || strings.HasPrefix(key, k+".") || strings.HasPrefix(key, k+"[]")
	})
}

// NeedsRestart reports whether the daemon has to be restarted to apply a change of the key.
func (k Key) NeedsRestart() bool {
	return under(restartKeys, k.Path) && !under(runTimeKeys, k.Path)
}
