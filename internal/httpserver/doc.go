// Package httpserver serves HTTP to clients that are not trusted to be few, fast or well-meaning.
// It bounds the connections in all and per address, the time that a header, a body and a whole
// exchange may take, and decides which hosts and origins are answered. It knows nothing of what is
// served.
//
// A Server owns its connections. Each connection counts from Accept to Close. At the bound the
// listener makes room by closing the connection that has been idle for longest; without an idle one
// it answers the new connection 503 and closes it. The listener always accepts, so it neither spins
// nor leaves clients in the backlog.
//
// Transfers have a minimum rate instead of a time limit. Every body and every answer has a budget
// of time: waiting for the client spends it, bytes that get through refill it. A client that
// stalls, or stays below the rate, runs out of it. The time that a handler takes costs nothing, nor
// does a stream with nothing to send.
package httpserver
