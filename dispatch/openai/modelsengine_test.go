package openai

import (
	"strings"
	"testing"
)

// The engine differs if the weights, the context or the owner do, and not by order or time.
func TestModelListIdentifiesTheEngine(t *testing.T) {
	engine := func(entries ...string) string {
		t.Helper()
		list, err := readModels(strings.NewReader(`{"data":[`+strings.Join(entries, ",")+`]}`), 10)
		if err != nil {
			t.Fatal(err)
		}
		return list.Engine
	}
	a := `{"id":"a","root":"/w/a","max_model_len":8192,"owned_by":"vllm","created":1}`
	b := `{"id":"b","root":["odd",{}],"max_model_len":"long"}`
	same := engine(a, b)
	if got := engine(b, strings.Replace(a, `"created":1`, `"created":2`, 1)); got != same {
		t.Errorf("another order and time: %s, want %s", got, same)
	}
	for old, changed := range map[string]string{"/w/a": "/w/a-fp8", "8192": "4096",
		`"vllm"`: `"sglang"`} {
		if got := engine(strings.Replace(a, old, changed, 1), b); got == same {
			t.Errorf("%s instead of %s is the same engine", changed, old)
		}
	}
}
