// Package runner holds the wire types of the Model Runner API: what a model
// server tells beside its OpenAI-compatible routes (capabilities, health), the
// headers of an inference request and its answer, and the requests that load
// and unload models.
//
// Field names and meanings are the API's; durations are in the unit its names
// give.
package runner
