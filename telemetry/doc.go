// Package telemetry reads the state of runners for flow control: the metrics of inference engines,
// the capabilities of runners, and latencies of interactive requests from a Prometheus server. Each
// sample becomes a flowcontrol.Reading, which the caller's OnSample receives. The package takes no
// decisions.
//
// The names of engines' metrics are data: signals.yaml maps them to signals. Reader looks the names
// up on every scrape, because an engine may change them after an upgrade, and logs the names it
// found when they differ from the previous ones. A missing value is NaN, never zero.
//
// Reader.Run polls each source in a goroutine of its own, so that a source that hangs does not
// delay the others.
package telemetry
