// Package inline serves interactive requests that pass through Tidefill: a streaming reverse proxy
// that asks for a place before it sends.
//
// [Proxy.Serve] handles a request in these steps:
//
//  1. body.go reads the body until it knows the model, and checks all of it on the way (scan.go).
//  2. request.go finds the use case, the class, the deadline and the target.
//  3. exchange.go waits for a place (Admission), sends the request there, and tries another runner
//     if one refuses it before the client has got anything. It is the transport of an
//     [httputil.ReverseProxy], which does what HTTP asks of a proxy: hop-by-hop headers, interim
//     answers, trailers, flushing.
//  4. answer.go reads along as the answer passes: tokens, their times, the usage.
//
// A body changes only in the value of its member `model` and, if configured, of `cache_salt`. An
// answer changes only in its `model`, if the use case's target has another name. All other bytes
// stay as they are.
//
// A Proxy is safe for concurrent use. It starts no goroutine; each request belongs to the goroutine
// that called Serve. Locks guard what requests share: the memory of bodies, and which target a use
// case draws next.
package inline
