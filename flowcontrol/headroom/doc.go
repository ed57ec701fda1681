// Package headroom holds the flow-control policy headroom, which keeps what batch lines do to
// interactive requests within their objectives: to the time of iterations, to first tokens, and to
// the sequences and the KV cache of engines.
//
// Every request on a runner gets one token per iteration, so the time of an iteration is what
// interactive users feel. The policy measures it by the gaps between the tokens of streamed batch
// lines, or by what metrics and answers show. It estimates how long iterations would take without
// batch lines, and watches a pool that it does not know before the first line starts. It follows
// these rules:
//
//   - The mean iteration may take a target share of the room between its time without batch lines
//     and the TPOT objective. The pool's lines follow that target slowly, down to none, and each
//     runner's prompts are paced so that it holds. A cost model of the engine, corrected by
//     measurements, predicts what a line costs, and how far the number of lines has to move when
//     runners join or leave.
//   - The target share follows virtual requests: consecutive iterations, as many as an answer has
//     tokens, that were or were not late because of batch lines. Real late requests correct it.
//   - The distributions of interactive latencies show how many requests would be late if
//     iterations, or first tokens, took longer. They bound the target, the lines, and the part of
//     the time that prompts of batch lines may take. Forecasts compare how many were expected to
//     be late with how many were, and correct these bounds.
//   - The KV cache and the sequences that interactive requests have wanted at once stay free, and
//     more in a pool whose bursts are not known yet. Lines are evicted where requests wait.
//   - Where the router avoids busy runners, some runners are packed with lines.
//   - Silence shrinks the allowance slowly, sheds cut it at once, and a brake evicts lines while
//     iterations are too long in the whole pool.
//   - Deadlines may raise the allowance to a share of what is safe.
//
// Requests that are late without batch lines count for nothing: the share of them that is seen in
// times without lines is subtracted. In a pool that is not shared with interactive requests, lines
// fill the engines instead. See docs/headroom-details.md.
package headroom
