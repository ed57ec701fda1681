// Package headroom holds the flow-control policy headroom, which keeps the engines' iterations as
// long as interactive requests can bear, and no longer.
//
// Every request on a runner gets one token per iteration, so the time of an iteration is what
// interactive users feel. The policy measures it by the gaps between the tokens of streamed batch
// lines, or by what metrics and answers show, and it follows these rules:
//
//   - Each runner's prompts are paced so that its mean iteration takes a target share of the TPOT
//     objective: iterations below that earn time, prompts spend it.
//   - The pool's lines follow the same target, more slowly. A cost model of the engine, corrected
//     by measurements, predicts what a line costs, and how far the number of lines has to move when
//     runners join or leave.
//   - The target share, and the prompt tokens that may wait, follow the shares of interactive
//     requests that were late.
//   - KV cache and sequences are reserved for interactive requests.
//   - Silence shrinks the allowance slowly, sheds cut it at once, and a brake evicts lines when two
//     signs of harm agree.
//   - Deadlines may raise the allowance to a share of what is safe.
//
// In a pool that is not shared with interactive requests, lines fill the engines instead. See
// docs/headroom.md.
package headroom
