package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/internal/strictyaml"
)

// notOverridden are arguments of engines that nobody but an admin sets, by what they change. A name
// that ends with an asterisk is a beginning.
var notOverridden = []struct {
	changes string
	names   []string
}{
	{"it changes which model is served", []string{"model", "model_*", "served_model_name",
		"served_*", "revision", "tokenizer*", "code_revision", "speculative_model",
		"speculative_config", "lora_*", "enable_lora", "*adapter*", "hf_*", "quantization",
		"weight*", "load_format", "generation_config", "chat_template*", "json_model_*",
		"modelopt*", "remote_instance_*"}},
	{"it changes who can reach the engine", []string{"host", "port", "uds", "root_path",
		"*api_key*", "ssl*", "tls_*", "allowed_*", "allow_*", "cors*", "middleware",
		"otlp_*", "nccl_*", "dist_*", "master_*", "node_*", "nnodes", "http_*", "grpc_*",
		"server_*", "tool_server", "proxy*", "kv_events_config", "ec_transfer_config", "nats*",
		"etcd*", "disaggregation_*", "mooncake*", "lmcache*", "*_url", "*_host", "*_port", "*_ip",
		"*_addr", "*_address", "*_endpoint"}},
	{"it reads or writes files", []string{"download_dir", "config", "config_*", "log_*",
		"file_storage*", "disable_log*", "cache_dir", "*_path", "*_dir", "*_file", "*_folder",
		"*_options", "*dump*", "*profiler*", "hicache_storage*", "speculative_token_map"}},
	{"it loads code", []string{"trust_remote_code", "*plugin*", "*_cls", "*hooks*",
		"io_processor*", "logits_processors", "additional_config", "kv_transfer_config",
		"distributed_executor_backend", "executor*", "custom_*", "compilation_config"}},
	{"it changes the accelerators", []string{"*parallel*", "device*", "tp", "pp", "dp", "ep",
		"tp_*", "pp_*", "dp_*", "ep_*", "base_gpu*", "gpu_id*", "mem_fraction_static"}},
}

// forbidden returns the reason why users can't set an argument, also if an admin would let them;
// empty: there is none. Engines take a part of an argument after a dot.
func forbidden(name string) (reason string) {
	name, _, _ = strings.Cut(name, ".")
	name = strings.ToLower(strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_"))
	for _, of := range notOverridden {
		for _, pattern := range of.names {
			if like(name, pattern) {
				return of.changes
			}
		}
	}
	return ""
}

// like reports whether a name is as a pattern, in which an asterisk at an end is any text.
func like(name, pattern string) bool {
	begin, end := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	text := strings.Trim(pattern, "*")
	switch {
	case begin && end:
		return strings.Contains(name, text)
	case begin:
		return strings.HasSuffix(name, text)
	case end:
		return strings.HasPrefix(name, text)
	}
	return name == text
}

// typedArgs returns the names of the typed arguments, in their order.
func typedArgs() (names []string) {
	t := reflect.TypeFor[EngineArgs]()
	for i := range t.NumField() {
		if name, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); option != "inline" {
			names = append(names, name)
		}
	}
	return names
}

// Allowed returns the names of the arguments that users of the template may set.
func (s *TemplateSpec) Allowed() []string {
	if s.Overrides.EngineArgs != nil {
		return slices.Sorted(maps.Keys(s.Overrides.EngineArgs))
	}
	return slices.DeleteFunc(typedArgs(), func(name string) bool { return forbidden(name) != "" })
}

// Override returns the template with other engine arguments, in JSON's syntax, and the arguments
// that were set. The faults have paths below engine_args.
func (s TemplateSpec) Override(
	args map[string]json.RawMessage,
) (changed TemplateSpec, f faults.List) {
	allowed := s.Allowed()
	changed = s
	changed.EngineArgs.Extra = maps.Clone(s.EngineArgs.Extra)
	for _, name := range slices.Sorted(maps.Keys(args)) {
		path := "engine_args." + name
		if reason := forbidden(name); reason != "" {
			f.Add(path, "can't be overridden: %s; choose another template", reason)
			continue
		}
		if !slices.Contains(allowed, name) {
			f.Add(path, "can't be overridden with this template; %s",
				strictyaml.Known(name, allowed))
			continue
		}
		one, value := member(name, args[name])
		if reason := unusable(value); reason != "" {
			f.Add(path, "%s", reason)
			continue
		}
		values := strictyaml.Decode(one, "engine_args", &changed.EngineArgs)
		for _, fault := range values.Faults() {
			f = append(f, fault)
		}
		s.Overrides.EngineArgs[name].check(&f, path, value, "template")
	}
	for _, err := range changed.EngineArgs.Validate() {
		f = append(f, fmt.Errorf("engine_args.%w", err))
	}
	return changed, f
}

// member returns a table with one entry in JSON's syntax, and its value; nil: it can't be read.
func member(name string, text json.RawMessage) (table, value *yaml.Node) {
	value, err := strictyaml.FromJSON(text)
	if err != nil {
		return nil, nil
	}
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, value}}, value
}

// unusable returns why a value can't be the override of an argument; empty: it can.
func unusable(value *yaml.Node) (reason string) {
	switch {
	case value == nil:
		return "can't be read"
	case value.Tag == "!!null":
		return "is null, which changes nothing; leave it out"
	case value.Kind == yaml.SequenceNode:
		for _, element := range value.Content {
			if reason := unusable(element); reason != "" {
				return "has a value that " + reason
			}
		}
	case value.Tag == "!!str" && strings.HasPrefix(strings.TrimSpace(value.Value), "-"):
		return "begins with -, so that an engine would take it for another argument"
	case value.Tag == "!!str" && strings.ContainsFunc(value.Value, unicode.IsControl):
		return "contains a control character, such as a newline"
	}
	return ""
}

// check reports a number outside of an admin's bounds. item is what has them.
func (b Bounds) check(f *faults.List, path string, value *yaml.Node, item string) {
	var number float64
	if b.Min == nil && b.Max == nil {
		return
	}
	switch err := value.Decode(&number); {
	case err != nil:
		f.Add(path, "is not a number, and this %s bounds it", item)
	case b.Min != nil && number < *b.Min:
		f.Add(path, "is %v, must be at least %v with this %s", number, *b.Min, item)
	case b.Max != nil && number > *b.Max:
		f.Add(path, "is %v, must be at most %v with this %s", number, *b.Max, item)
	}
}

// All returns the arguments that are set, by name.
func (a EngineArgs) All() map[string]any {
	all := map[string]any{}
	maps.Copy(all, a.Extra)
	v := reflect.ValueOf(a)
	for i, name := range typedArgs() {
		if field := v.Field(i); !field.IsNil() {
			all[name] = field.Elem().Interface()
		}
	}
	return all
}
