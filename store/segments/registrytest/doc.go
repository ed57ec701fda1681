// Package registrytest is the conformance suite of [segments.Registry], and has a registry in
// memory.
package registrytest
