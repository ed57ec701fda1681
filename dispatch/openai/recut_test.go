package openai

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// How a member of a chunk may be cut into two chunks; those that are not named here may come in
// the first one or in both.
var (
	cutTexts = []string{"content", "refusal", "reasoning", "reasoning_content", "arguments",
		"input", "text"}
	cutLists = []string{"content", "refusal", "token_ids", "tokens", "token_logprobs",
		"top_logprobs", "text_offset"}
	cutObjects = []string{"delta", "function", "function_call", "custom", "logprobs"}
	cutIndexed = []string{"choices", "tool_calls"}
	// inLast come with or after the last text.
	inLast = []string{"finish_reason", "stop_reason", "matched_stop", "usage", "hidden_states",
		"sglext", "system_fingerprint"}
)

// recut returns a stream of the same answer whose chunks are cut into smaller ones at random.
// Events that are no chunks, such as those of responses, stay as they are.
func recut(t *rapid.T, stream string) string {
	events, err := readEvents(strings.NewReader(stream), 1<<20)
	if err != io.EOF {
		t.Fatal(err)
	}
	var made strings.Builder
	for _, event := range events {
		if strings.Contains(event, `"choices"`) {
			chunk := decode(t, event)
			for rapid.IntRange(0, 2).Draw(t, "cut once more") == 0 {
				var first map[string]any
				first, chunk = halve(t, chunk)
				made.WriteString("data: " + encode(t, first) + "\n\n")
			}
			event = encode(t, chunk)
		}
		made.WriteString("data: " + strings.ReplaceAll(event, "\n", "\ndata: ") + "\n\n")
	}
	return made.String()
}

func halve(t *rapid.T, object map[string]any) (first, second map[string]any) {
	first, second = map[string]any{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		switch v := value.(type) {
		case string:
			if slices.Contains(cutTexts, name) {
				runes := []rune(v)
				n := rapid.IntRange(0, len(runes)).Draw(t, "runes")
				first[name], second[name] = string(runes[:n]), string(runes[n:])
				continue
			}
		case map[string]any:
			if slices.Contains(cutObjects, name) {
				first[name], second[name] = halve(t, v)
				continue
			}
		case []any:
			switch {
			case slices.Contains(cutIndexed, name):
				first[name], second[name] = halveEach(t, v)
				continue
			case slices.Contains(cutLists, name):
				n := rapid.IntRange(0, len(v)).Draw(t, "elements")
				first[name], second[name] = v[:n], v[n:]
				continue
			}
		}
		last := slices.Contains(inLast, name)
		if !last {
			first[name] = value
		}
		if last || name == "index" || rapid.Bool().Draw(t, "in both") {
			second[name] = value
		}
	}
	return first, second
}

func halveEach(t *rapid.T, objects []any) (first, second []any) {
	first, second = []any{}, []any{}
	for _, object := range objects {
		a, b := halve(t, object.(map[string]any))
		first, second = append(first, a), append(second, b)
	}
	return first, second
}

func encode(t rapid.TB, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
