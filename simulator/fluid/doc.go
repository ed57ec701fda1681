// Package fluid lets a scaling law run for days in a moment: replicas start, serve and drain one by
// one, but traffic and batch work flow like water, after the engine's law. It is where laws of
// autoscale are compared over seeds and sizes; what single requests make of it is the full plant's
// to say.
package fluid
