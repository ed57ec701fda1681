// Package async sends requests to model servers through queues in Redis. Workers beside the servers
// take the requests and return the answers, so that a dispatcher need not reach the servers.
//
// A [Queues] is the dispatcher's side: a [Carrier] offers the requests of one runner and awaits
// their answers. It is an offerer of its own, also where another one of the process serves the
// same runner. A [Worker] serves one runner: it takes requests, sends them to its engine, and
// returns what the engine answered, byte for byte. Both use the scripts of script.go, which are
// atomic; the protocol has no other writer.
//
// # States
//
// An item is one attempt of one request. Its id is of one offerer and never used again:
//
//	offer ──► queued ──take──► leased ──answer──► answered ──collect──► gone
//	            ▲  │              │ │
//	            │  │withdraw      │ └─withdraw──► gone
//	            │  └────► gone    │
//	            └──lease ended────┘   or released by its worker
//
// These rules hold:
//
//   - A take gives the item a token. Only the holder of the current token can renew, release or
//     answer. What comes with an older one is dropped (fenced).
//   - A lease that ends returns the item to the queue while a worker of the runner is alive. An
//     item whose lease has ended maxLost times, or that has no worker any more, is answered with
//     an error: its engine may have received it.
//   - An item whose offerer shows no sign of life is dropped, and its worker ends the request.
//   - A dispatcher that misses an item offers it again under the same id, so flushing Redis costs
//     time only. An answer is delivered once: the first one ends the wait for the id.
//
// Redis is never the truth about a line: that is the journal of its chunk. So nothing here needs to
// be durable, and all keys expire.
//
// # Keys
//
// All keys of a runner have its name as hash tag, so each script touches one node of a cluster:
//
//	PREFIX:async:queue:{RUNNER}      sorted set: id -> deadline
//	PREFIX:async:items:{RUNNER}      hash: body, deadline, token and lost leases of each id
//	PREFIX:async:leases:{RUNNER}     sorted set: id -> when its lease ends
//	PREFIX:async:workers:{RUNNER}    sorted set: worker -> until when it counts as alive
//	PREFIX:async:offerers:{RUNNER}   sorted set: offerer -> until when it counts as alive
//	PREFIX:async:bell:{RUNNER}       list of one element while a worker should look
//	PREFIX:async:answers:{RUNNER}:O  list of answers for offerer O
//
// All times are by the clock of Redis, in milliseconds.
package async
