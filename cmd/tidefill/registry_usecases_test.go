package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sets = `apiVersion: tidefill.dev/v1alpha1
kind: UseCaseSet
metadata: {name: chat, namespace: team}
spec:
  useCases:
  - modelName: chat
    objective: {desiredAveragePerOutputTokenLatencyAtP95OverMultipleRequests: 40ms}
    targetModels: [{targetModelName: v1, weight: 20}, {targetModelName: v2, weight: 80}]
    sticky: x-session
    tenants: [a, b]
  - modelName: sum
  poolRef: [{name: prod}]
---
- {name: open, spec: {useCases: [{modelName: base, weight: 2}]}}
- {name: wrong, spec: {useCases: []}}
`

func TestUseCasesOnTheCommandLine(t *testing.T) {
	dir := startRegistry(t, map[string]string{"u.yaml": sets})
	for args, want := range map[string]string{
		"get usecases": `NAME MODEL CLASS OBJECTIVE TARGETS POOLS ACCEPTED
open base standard - base (all) True
team/chat chat critical 40ms v1:20,v2:80 prod PoolNotFound
team/chat sum standard - sum prod PoolNotFound
`,
		"get usecase open -o wide": "NAME MODEL CLASS OBJECTIVE TARGETS POOLS ACCEPTED WEIGHT " +
			"STICKY TENANTS DOCUMENT\nopen base standard - base (all) True 2 none - " + dir +
			"/u.yaml:14\n",
		"get usecase/team/chat -o name": "usecase/team/chat\n",
	} {
		if got := must(t, exitOK, strings.Fields(args)...); fields(got.out) != fields(want) {
			t.Errorf("%s prints\n%s\nwant\n%s", args, got.out, want)
		}
	}
	if got := must(t, exitOK, "get", "usecases"); !strings.Contains(got.errors,
		"u.yaml:15: usecase wrong: spec.useCases: is required") {
		t.Errorf("refused: %s", got.errors)
	}
	text := must(t, exitOK, "describe", "usecase", "team/chat").out
	for _, want := range []string{"Name:         team/chat\n", "Pools:        prod\n",
		"Accepted:     no (PoolNotFound): Use cases wait for pools that do not exist: prod.",
		"      sticky: x-session\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("describe lacks %q:\n%s", want, text)
		}
	}
	// What is printed as a document is read as the same sets.
	text = must(t, exitOK, "get", "usecases", "-o", "yaml").out
	want, got := readDocument("u.yaml", sets).UseCases(), readDocument("printed", text)
	if len(got.Refused()) > 0 || len(got.UseCases()) != len(want) {
		t.Fatalf("refused %v of\n%s", got.Refused(), text)
	}
	for i, e := range want {
		if diff := cmp.Diff(e.Item, got.UseCases()[i].Item); diff != "" {
			t.Errorf("%v (-want +got)\n%s", e.Item.Key(), diff)
		}
	}
}

func TestCheckOfUseCases(t *testing.T) {
	good, wrong, _ := strings.Cut(sets, "- {name: wrong")
	name := writeFile(t, "any.yaml", good)
	if got := must(t, exitOK, "check", name); got.out != name+" is valid: 0 templates, "+
		"0 profiles, 2 use case sets.\n" {
		t.Errorf("got %s", got.out)
	}
	const example = "../../deploy/examples/inline/usecases.yaml"
	if got := must(t, exitOK, "check", example); got.out != example+" is valid: 0 templates, "+
		"0 profiles, 1 use case set, 1 pool.\n" {
		t.Errorf("got %s", got.out)
	}
	name = writeFile(t, "any.yaml", good+"- {name: wrong"+wrong)
	if got := must(t, exitError, "check", name); got.out != name+":15: spec.useCases: is "+
		"required; list at least one use case\n" {
		t.Errorf("got %s", got.out)
	}
}
