// Package runner defines the wire types of the Model Runner API: what a runner serves beside its
// OpenAI-compatible routes (capabilities, health), the headers of an inference request and its
// response, and the requests that load and unload models. State is what of it decides whether a
// runner takes lines.
//
// Field names and meanings are those of the API; durations are in the unit that the name states.
package runner
