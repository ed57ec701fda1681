// Package routing chooses the runner for a request: of an interactive request and of a batch line
// alike.
//
// The choice weighs work against work, in milliseconds of engine time. Each runner costs what it
// carries, less the prompt work that its KV cache saves. The request goes where the cost is least.
// So a runner gets prompts that it knows until it has more to do than a cold runner would, the
// prompt included. From then on the others get them too, and know them from then on. A runner that
// has just joined carries nothing, and is sent requests at once.
//
// Costs are estimates, because nobody knows the length of an answer. Runners whose costs differ by
// less than a tenth of the request's own work are taken as equal. Of these, the one with the fewest
// requests is chosen, since requests that decode together slow each other, and then the one that
// was sent a request longest ago. So an idle pool is used in turn.
//
// A Table remembers which prompts went where. What it cannot know is what an engine computed for
// others, and how much of the cache their requests take.
//
// The caller leaves out runners that are down, failing, draining or full, and those that do not
// have the model. The package neither reads a clock nor draws from randomness: the same calls give
// the same choices.
package routing
