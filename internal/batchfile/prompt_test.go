package batchfile

import (
	"strings"
	"testing"
)

// only scans a file of one line and returns the record of the line.
func only(t *testing.T, url, body string) Line {
	t.Helper()
	sum, lines := scan(t, `{"custom_id":"a","method":"POST","url":"`+url+`","body":`+body+`}`,
		Limits{})
	if sum.FaultCount > 0 {
		t.Fatalf("%s: %v", body, sum.Faults)
	}
	return lines[0]
}

func TestPromptBytes(t *testing.T) {
	image := `{"url":"data:image/png;base64,` + strings.Repeat("A", 9_000) + `"}`
	for _, tt := range []struct {
		url, body string
		want      int
	}{
		{"/v1/chat/completions", `{"model":"m","messages":[1,2],"input":"not read here"}`,
			len(`[1,2]`)},
		{"/v1/chat/completions", `{"model":"m","tools":[{}],"messages":[1,2]}`, len(`[{}][1,2]`)},
		{"/v1/chat/completions", `{"model":"m","messages":[` + image + `]}`,
			len(`[`+image+`]`) - 9_000},
		{"/v1/completions", `{"model":"m","prompt":"abc"}`, len(`"abc"`)},
		{"/v1/responses", `{"input":"abc","model":"m","instructions":"de"}`, len(`"abc""de"`)},
		{"/v1/embeddings", `{"model":"m","input":["a","b"]}`, len(`["a","b"]`)},
		{"/v1/rerank", `{"model":"m","query":"q","documents":["a","b"]}`, len(`"q"["a","b"]`)},
		{"/v1/score", `{"model":"m","text_1":"q","text_2":"a"}`, len(`"q""a"`)},
		{"/v1/chat/completions", `{"model":"m"}`, 0},
	} {
		if got := only(t, tt.url, tt.body).PromptBytes; got != uint32(tt.want) {
			t.Errorf("%s %.80s: %d bytes, want %d", tt.url, tt.body, got, tt.want)
		}
	}
}

func TestMaxTokens(t *testing.T) {
	for _, tt := range []struct {
		url, given string
		want       uint32
	}{
		{"/v1/chat/completions", `"max_tokens":5`, 5},
		{"/v1/chat/completions", `"max_tokens":5,"max_completion_tokens":4`, 4},
		{"/v1/chat/completions", `"max_tokens":5,"max_completion_tokens":null`, 5},
		{"/v1/chat/completions", `"max_output_tokens":5`, 0},
		{"/v1/responses", `"max_tokens":4,"max_output_tokens":5`, 5},
		{"/v1/completions", `"max_tokens":99999999999999999999`, 1<<32 - 1},
		{"/v1/completions", `"max_tokens":1.5`, 0},
		{"/v1/embeddings", `"max_tokens":5`, 0},
	} {
		if got := only(t, tt.url, `{"model":"m",`+tt.given+`}`).MaxTokens; got != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.url, tt.given, got, tt.want)
		}
	}
}

func TestEmbeddingInputs(t *testing.T) {
	for input, want := range map[string]int64{
		`"a"`: 1, `["a"]`: 1, `[ "a" , "b\"]" ]`: 2, `[1,2,3]`: 1, `[[1,2],[3]]`: 2, `[]`: 1,
		`[["]"],[",[,"]]`: 2, `null`: 1,
	} {
		sum, _ := scan(
			t, `{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":`+input+`}}`, Limits{})
		if sum.FaultCount > 0 || sum.EmbeddingInputs != want {
			t.Errorf("%s: %d inputs, want %d (%v)", input, sum.EmbeddingInputs, want, sum.Faults)
		}
	}
}

func TestPrefixHash(t *testing.T) {
	hash := func(prompt string) uint64 {
		return only(t, "/v1/completions", `{"model":"m","prompt":"`+prompt+`"}`).PrefixHash
	}
	shared := strings.Repeat("s", prefixBytes-1) // the quote counts
	if hash(shared+"a") != hash(shared+"bc") {
		t.Error("prompts with the same first KiB differ")
	}
	if hash(shared[1:]+"a") == hash(shared[1:]+"b") {
		t.Error("prompts that differ within the first KiB don't")
	}
	split := func(input string) uint64 {
		return only(t, "/v1/responses",
			`{"model":"m","input":"`+input+`","instructions":"`+shared[:600]+`"}`).PrefixHash
	}
	if split(shared[:500]+"a") != split(shared[:500]+"b") {
		t.Error("prompts in two fields with the same first KiB differ")
	}
	if split("a") == split("b") {
		t.Error("prompts in two fields that differ within the first KiB don't")
	}
	if hash("a") == hash("b") || hash("a") == hash(`a\u0000`) {
		t.Error("short prompts collide")
	}
	// Indexes hold these values.
	if got, want := hash("the same for ever"), uint64(0x8da2e4e55e006f2); got != want {
		t.Errorf("hash %#x, want %#x", got, want)
	}
}

func TestEndpointsNameTheirFields(t *testing.T) {
	for _, e := range Endpoints() {
		for _, name := range append(e.Prompt, e.MaxTokens...) {
			if f := bodyField([]byte(`"` + name + `"`)); f.key() != name {
				t.Errorf("%s: the scanner does not read %q", e.URL, name)
			}
		}
		if found, ok := LookupEndpoint(e.URL); !ok || found.URL != e.URL {
			t.Errorf("%s is not found", e.URL)
		}
	}
	for f := fieldCustomID; f <= fieldBody; f++ {
		if got := lineField([]byte(`"` + f.key() + `"`)); got != f {
			t.Errorf("%v is read as %v", f, got)
		}
	}
	for f := fieldModel; f < fieldCount; f++ {
		if got := bodyField([]byte(`"` + f.key() + `"`)); got != f {
			t.Errorf("%v is read as %v", f, got)
		}
	}
	if _, ok := LookupEndpoint("/v1/chat/completions/"); ok {
		t.Error("a URL matched that is not the same")
	}
}
