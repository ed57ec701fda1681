package batchfile

import "slices"

// Endpoint is a URL that lines may name, and how to read the bodies sent there.
type Endpoint struct {
	URL string
	// Prompt names the body's fields that the engine reads as input, in the engine's order.
	Prompt []string
	// MaxTokens names the fields that limit the output, in the order of precedence. Empty: the
	// endpoint has no output tokens.
	MaxTokens []string
	// Streams reports whether an answer can be streamed token by token.
	Streams bool
	// Lists names the members of an answer of which one is a list, which another server's
	// answers lack. Servers differ for some endpoints.
	Lists []string
	// modelOptional reports whether a body may omit its model.
	modelOptional bool

	prompt, maxTokens []field
	prefix            bool // a common prefix of prompts saves engine time
}

// Endpoints returns every URL that a line may name.
func Endpoints() []Endpoint { return slices.Clone(endpoints) }

// LookupEndpoint returns the endpoint with exactly this URL.
func LookupEndpoint(url string) (Endpoint, bool) {
	i := slices.IndexFunc(endpoints, func(e Endpoint) bool { return e.URL == url })
	if i < 0 {
		return Endpoint{}, false
	}
	return endpoints[i], true
}

var endpoints = named([]Endpoint{
	{
		URL:       "/v1/chat/completions",
		Streams:   true,
		Lists:     []string{"choices"},
		prompt:    []field{fieldTools, fieldMessages},
		maxTokens: []field{fieldMaxCompletionTokens, fieldMaxTokens},
		prefix:    true,
	},
	{
		URL:       "/v1/completions",
		Streams:   true,
		Lists:     []string{"choices"},
		prompt:    []field{fieldPrompt},
		maxTokens: []field{fieldMaxTokens},
		prefix:    true,
	},
	{
		URL:       "/v1/responses",
		Streams:   true,
		Lists:     []string{"output"},
		prompt:    []field{fieldTools, fieldInstructions, fieldInput},
		maxTokens: []field{fieldMaxOutputTokens},
		prefix:    true,
	},
	{URL: "/v1/embeddings", Lists: []string{"data"}, prompt: []field{fieldInput, fieldMessages}},
	{URL: "/v1/moderations", Lists: []string{"results"}, prompt: []field{fieldInput},
		modelOptional: true},
	{URL: "/v1/rerank", Lists: []string{"results", "data"},
		prompt: []field{fieldQuery, fieldDocuments}, prefix: true},
	{URL: "/v1/score", Lists: []string{"data", "scores"}, // of vLLM, of SGLang
		prompt: []field{fieldText1, fieldText2, fieldQueries, fieldDocuments}, prefix: true},
})

func named(table []Endpoint) []Endpoint {
	for i := range table {
		e := &table[i]
		for _, f := range e.prompt {
			e.Prompt = append(e.Prompt, f.key())
		}
		for _, f := range e.maxTokens {
			e.MaxTokens = append(e.MaxTokens, f.key())
		}
	}
	return table
}
