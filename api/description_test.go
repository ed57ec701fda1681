package api

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// described is a part of the OpenAPI description.
type described map[string]any

// at returns the part at a path of keys; nil: there is none.
func (d described) at(path ...string) described {
	for _, key := range path {
		next, _ := d[key].(map[string]any)
		d = next
	}
	return d
}

func (d described) strings(key string) (all []string) {
	list, _ := d[key].([]any)
	for _, one := range list {
		text, _ := one.(string)
		all = append(all, text)
	}
	return all
}

// deref returns the part that a $ref names, or d.
func (d described) deref(root described) described {
	ref, is := d["$ref"].(string)
	if !is {
		return d
	}
	return root.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// types returns the JSON types of a schema.
func (d described) types(root described) (types []string) {
	d = d.deref(root)
	if one, is := d["type"].(string); is {
		return []string{one}
	}
	types = d.strings("type")
	for _, keyword := range []string{"oneOf", "anyOf"} {
		list, _ := d[keyword].([]any)
		for _, one := range list {
			types = append(types, described(one.(map[string]any)).types(root)...)
		}
	}
	return types
}

func describedBy(t *testing.T, s *service) described {
	t.Helper()
	a := s.get("/openapi.json")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %v", a.status, a.header)
	}
	var d described
	if err := json.Unmarshal([]byte(a.body), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDescriptionNeedsNoKey(t *testing.T) {
	keys, err := ParseKeys("a=key-a")
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(c *Config, d *Deps) {
		d.Keys, d.Version, c.RequestsPerMinute = keys, "v7", 1
	})
	for range 3 {
		if d := describedBy(t, s); d.at("info")["version"] != "v7" || d["openapi"] != "3.1.0" {
			t.Errorf("got %v, %v", d["openapi"], d["info"])
		}
	}
	first := s.get("/openapi.json")
	if first.header.Get("Cache-Control") == "" {
		t.Error("no Cache-Control")
	}
	again := s.get("/openapi.json", "If-None-Match", first.header.Get("Etag"))
	if again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("got %d for the same ETag", again.status)
	}
	if head := s.do("HEAD", "/openapi.json", nil); head.status != http.StatusOK {
		t.Errorf("HEAD got %d", head.status)
	}
	s.do("POST", "/openapi.json", nil).refused(405, "", "method_not_allowed", "")
}

func TestTheDescriptionHasAllRoutes(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Inline = &echo{} })
	document := describedBy(t, s)
	operations := func(of map[string]any) (all []string) {
		for method := range of {
			if method != "parameters" && method != "HEAD" {
				all = append(all, strings.ToUpper(method))
			}
		}
		slices.Sort(all)
		return all
	}
	got, want := map[string][]string{}, map[string][]string{}
	for path := range document.at("paths") {
		got[path] = operations(document.at("paths", path))
	}
	for pattern, methods := range s.server.routed {
		generic := make(map[string]any, len(methods))
		for method := range methods {
			generic[method] = nil
		}
		want[strings.ReplaceAll(pattern, "...}", "}")] = operations(generic)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("described are %v,\nserved are %v", got, want)
	}
}

// encoded lists the types that the API encodes, by the names of their schemas.
var encoded = map[string]any{
	"File": fileObject{}, "Deleted": deletedObject{}, "Upload": uploadObject{},
	"UploadPart": partObject{}, "Batch": batchObject{}, "RequestCounts": requestCounts{},
	"BatchErrors": batchErrors{}, "BatchError": batchError{}, "BatchUsage": batchUsage{},
	"BatchDetails": batchDetails{}, "BatchDelivery": batchDelivery{},
	"BatchModel": batchModel{}, "BatchOutput": batchOutput{},
	"Failure": store.Failure{}, "Forecast": forecast{}, "Resolved": resolvedObject{},
	"ResolvedTemplate": resolvedTemplate{}, "AppliedOverrides": appliedOverrides{},
	"DryRun": dryRunObject{}, "DryRunModel": dryRunModel{}, "DryRunPool": dryRunPool{},
	"DryRunNearest": dryRunNearest{}, "DryRunWindow": dryRunWindow{},
	"DryRunAffected": dryRunAffected{}, "DryRunOther": dryRunOther{},
	"ProgressEvent": progressEvent{}, "ReasonEvent": reasonObject{}, "Model": modelObject{},
	"Registry": registryObject{}, "Template": listedTemplate{}, "Profile": listedProfile{},
	"UsageBucket": usageBucket{}, "UsageResult": usageResult{}, "UsageDetails": usageDetails{},
	"Key": keyObject{}, "KeyOwner": keyOwner{}, "KeyDetails": keyDetails{},
	"Tenant": tenantObject{}, "ErrorResponse": envelope{}, "Error": envelopeError{},
}

// otherTagged lists the types with JSON tags without schemas: one is stored, one is a part of
// resolvedObject, and two are for the console.
var otherTagged = []string{"shownTemplate", "resolvedForAdmins", "FaultCount", "EndedLine"}

func TestTheDescriptionHasAllObjects(t *testing.T) {
	document := describedBy(t, newService(t))
	names := slices.Clone(otherTagged)
	for name, value := range encoded {
		of := reflect.TypeOf(value)
		names = append(names, of.Name())
		schema := document.at("components", "schemas", name)
		if schema == nil {
			t.Errorf("there is no schema %s", name)
			continue
		}
		compareObject(t, document, name, schema, of)
	}
	// A type that is not in the list is found by its tags.
	for _, file := range apiSources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			object, is := spec.Type.(*ast.StructType)
			if is && slices.ContainsFunc(object.Fields.List, func(f *ast.Field) bool {
				return f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`)
			}) && !slices.Contains(names, spec.Name.Name) {
				t.Errorf("type %s is encoded as JSON and has no schema", spec.Name.Name)
			}
			return true
		})
	}
}

func apiSources(t *testing.T) (files []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// compareObject compares a schema with the type of the objects that it describes.
func compareObject(t *testing.T, root described, name string, schema described, of reflect.Type) {
	t.Helper()
	properties, fields := schema.at("properties"), map[string]bool{}
	var required []string
	var walk func(of reflect.Type, optional bool)
	walk = func(of reflect.Type, optional bool) {
		for field := range of.Fields() {
			if field.Anonymous {
				inside, pointer := field.Type, field.Type.Kind() == reflect.Pointer
				if pointer {
					inside = inside.Elem()
				}
				walk(inside, pointer)
				continue
			}
			key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields[key] = true
			if !optional && options == "" {
				required = append(required, key)
			}
			property, is := properties[key].(map[string]any)
			if !is {
				t.Errorf("%s.%s is not described", name, key)
				continue
			}
			compareType(t, root, name+"."+key, property, field.Type, options == "omitempty")
		}
	}
	walk(of, false)
	for key := range properties {
		if !fields[key] {
			t.Errorf("%s.%s is described and does not exist", name, key)
		}
	}
	got := schema.strings("required")
	slices.Sort(got)
	slices.Sort(required)
	if !slices.Equal(got, required) {
		t.Errorf("%s requires %v, want %v", name, got, required)
	}
}

// compareType compares the types of a property with the type that is encoded. absent says that nil
// is left out.
func compareType(
	t *testing.T, root described, name string, d described, of reflect.Type, absent bool,
) {
	t.Helper()
	types := d.types(root)
	nullable := slices.Contains(types, "null")
	null := of.Kind() == reflect.Pointer && !absent
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[json.RawMessage]() {
		return
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number",
		reflect.Int: "integer", reflect.Int64: "integer", reflect.Slice: "array",
		reflect.Map: "object", reflect.Struct: "object",
	}[of.Kind()]
	if !slices.Contains(types, want) || len(types) > 2 || len(types) == 2 && !nullable {
		t.Errorf("%s has the types %v, want %s", name, types, want)
	}
	if of.Kind() == reflect.Struct && of.Name() == "" {
		compareObject(t, root, name, d, of)
	}
	// Slices and maps don't say whether they are ever null.
	if of.Kind() != reflect.Slice && of.Kind() != reflect.Map && nullable != null {
		t.Errorf("%s: nullable is %v, want %v", name, nullable, null)
	}
}

func TestTheDescriptionHasAllParameters(t *testing.T) {
	schemas := describedBy(t, newService(t)).at("components", "schemas")
	o := &jsonObject{fault: new(error)}
	readCreation(o, time.Now())
	for name, keys := range map[string][]string{
		"CreateBatchRequest": o.known, "BatchOptions": ExtensionKeys(),
	} {
		got := slices.Sorted(maps.Keys(schemas.at(name, "properties")))
		if want := slices.Compact(slices.Sorted(slices.Values(keys))); !slices.Equal(got, want) {
			t.Errorf("%s describes %v, want %v", name, got, want)
		}
	}
	var urls []string
	for _, url := range schemas.at("Endpoint").strings("enum") {
		urls = append(urls, "'"+url+"'")
	}
	if got := strings.Join(urls, ", "); got != endpointList() {
		t.Errorf("the endpoints are %s, want %s", got, endpointList())
	}
}

// Every reference leads somewhere, and everything is explained.
func TestTheDescriptionIsComplete(t *testing.T) {
	document := describedBy(t, newService(t))
	var walk func(path string, part any)
	walk = func(path string, part any) {
		if list, is := part.([]any); is {
			for i, one := range list {
				walk(fmt.Sprintf("%s/%d", path, i), one)
			}
		}
		object, _ := part.(map[string]any)
		d := described(object)
		if d["$ref"] != nil && d.deref(document) == nil {
			t.Errorf("%s: there is no %v", path, d["$ref"])
		}
		for name, property := range d.at("properties") {
			of := described(property.(map[string]any))
			if of.deref(document)["description"] == nil {
				t.Errorf("%s/properties/%s has no description", path, name)
			}
		}
		for key, inside := range object {
			walk(path+"/"+key, inside)
		}
	}
	walk("#", map[string]any(document))
	for kind, parts := range document.at("components") {
		for name := range parts.(map[string]any) {
			if document.at("components", kind, name)["description"] == nil {
				t.Errorf("#/components/%s/%s has no description", kind, name)
			}
		}
	}
}
