package batchfile

import "slices"

// Endpoint is a URL that lines may name, and how to read the bodies sent there.
type Endpoint struct {
	URL string
	// Prompt names the body's fields that the engine reads as input, in the order in which it sees
	// them.
	Prompt []string
	// MaxTokens names the fields that bound the output, the one that counts most first. Empty: no
	// output tokens.
	MaxTokens []string
	// Streams says whether an answer can come token by token.
	Streams bool
	// ModelOptional says whether a body may leave out its model.
	ModelOptional bool

	prompt, maxTokens []field
	prefix            bool // a shared beginning of prompts saves the engine work
}

// Endpoints returns every URL that a line may name.
func Endpoints() []Endpoint { return slices.Clone(endpoints) }

// LookupEndpoint returns the endpoint of a URL, which must match exactly.
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
		prompt:    []field{fieldTools, fieldMessages},
		maxTokens: []field{fieldMaxCompletionTokens, fieldMaxTokens},
		prefix:    true,
	},
	{
		URL:       "/v1/completions",
		Streams:   true,
		prompt:    []field{fieldPrompt},
		maxTokens: []field{fieldMaxTokens},
		prefix:    true,
	},
	{
		URL:       "/v1/responses",
		Streams:   true,
		prompt:    []field{fieldTools, fieldInstructions, fieldInput},
		maxTokens: []field{fieldMaxOutputTokens},
		prefix:    true,
	},
	{URL: "/v1/embeddings", prompt: []field{fieldInput, fieldMessages}},
	{URL: "/v1/moderations", prompt: []field{fieldInput}, ModelOptional: true},
	{URL: "/v1/rerank", prompt: []field{fieldQuery, fieldDocuments}, prefix: true},
	{URL: "/v1/score", prompt: []field{fieldText1, fieldText2, fieldQueries, fieldDocuments},
		prefix: true},
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
