package deploy_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tidefill/tidefill/config"
)

// The schema of the value config lists the keys of the configuration. The rest of the schema is
// written by hand.
func TestSchemaHasTheKeysOfTheConfiguration(t *testing.T) {
	const file = chartDir + "/values.schema.json"
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, file)), &schema); err != nil {
		t.Fatal(err)
	}
	schema["properties"].(map[string]any)["config"] = configSchema()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		t.Fatal(err)
	}
	generated(t, file, text.Bytes())
}

type object = map[string]any

func section() object {
	return object{"type": "object", "additionalProperties": false, "properties": object{}}
}

// configSchema returns the schema of the configuration.
func configSchema() object {
	root := section()
	sections := map[string]object{"": root} // by path
	for _, key := range config.Keys() {
		parent, name := "", key.Path
		if i := strings.LastIndex(key.Path, "."); i >= 0 {
			parent, name = key.Path[:i], key.Path[i+1:]
		}
		in := sections[parent]
		if in == nil {
			continue // of a policy
		}
		schema := valueSchema(key.Type)
		in["properties"].(object)[name] = schema
		switch {
		case key.Path == "flowcontrol" || key.Path == "scheduler":
			// The daemon judges the settings of policies.
		case config.IsSection(key.Type):
			sections[key.Path] = schema
		case key.Type.Kind() == reflect.Slice && config.IsSection(key.Type.Elem()):
			sections[key.Path+"[]"] = schema["items"].(object)
		}
	}
	for _, open := range []string{"flowcontrol", "scheduler"} {
		root["properties"].(object)[open] = object{"type": "object"}
	}
	return root
}

func valueSchema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h|d))+$|^0$`}
	case config.IsText(t):
		return object{} // text or a list
	case config.IsSection(t):
		return section()
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": []string{"string", "number", "boolean"}}
	case reflect.Slice:
		return object{"type": "array", "items": valueSchema(t.Elem())}
	case reflect.Map:
		return object{"type": "object"}
	case reflect.Pointer:
		return valueSchema(t.Elem())
	}
	panic("no schema for " + t.String())
}

// The schema accepts every key with its default.
func TestSchemaAcceptsTheDefaults(t *testing.T) {
	text, err := config.Default().YAML()
	if err != nil {
		t.Fatal(err)
	}
	// Helm reads YAML 1.1, to which on without quotes is true.
	text = bytes.ReplaceAll(text, []byte("\n    on:"), []byte("\n    \"on\":"))
	var all object
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"listen", "admin_listen", "data", "tls", "auth", "scaler"} {
		delete(all, key) // set by the chart
	}
	all["upstreams"] = []object{{"url": "http://vllm:8000"}}
	values, err := yaml.Marshal(object{"config": all})
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, render(t, installed, string(values)))
}
