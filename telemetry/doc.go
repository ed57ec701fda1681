// Package telemetry reads the world for flow control: engines' metrics pages, runners' capabilities,
// and a Prometheus that knows how long interactive requests take. It decides nothing: each look
// becomes a flowcontrol.Reading and is handed on.
//
// How engines call their metrics is data (signals.yaml), looked up on each page anew, so that an
// engine may change its mind; what was found is logged when it differs from before. Absent is never
// zero. Each source is looked at by a goroutine of its own, which belongs to Probe.Run, so that one
// that hangs holds up no other.
package telemetry
