// Package upstream holds the configured upstreams and what is known of them: their clients, the
// models that they list, what they say of themselves, the engines behind gateways, and whether the
// times between tokens of their streams are those of an engine.
//
// [Upstream] is the configuration, [Runner] an upstream in use. A runner is safe for concurrent
// use. The goroutine of WatchModels asks it for its models; readers of metrics report its state and
// its engines; senders use its client; the planner is told by package lead which runners there are.
// A runner that is configured anew is another one, which inherits what is known if it continues the
// same server.
package upstream
