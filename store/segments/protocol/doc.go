// Package protocol holds the protocol of segments as a model, whose states its test searches
// exhaustively. It has no code.
package protocol
