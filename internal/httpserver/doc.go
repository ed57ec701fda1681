// Package httpserver serves HTTP to untrusted clients, which may be many, slow or hostile. It
// limits the connections in total and per address and the time of headers, bodies and answers, and
// decides which hosts and origins are served. It does not depend on the handlers.
//
// A Server owns its connections. A connection counts from Accept to Close. At the limit, the
// listener closes the connection that has been idle for longest; if none is idle, it answers the
// new connection 503 and closes it. It always accepts, so it neither spins nor leaves clients in
// the backlog.
//
// Transfers have a minimum rate instead of a time limit. Every body and every answer has a budget
// of time: waiting for the client spends it, and transferred bytes refill it. The budget of a
// client that stalls or stays below the rate runs out, and its connection is closed. The time of
// the handler does not count, nor does a stream with nothing to send.
package httpserver
