// Package flowcontrol sets the number of batch lines that each runner of a pool may carry now, and
// names what limits them.
//
// A Controller takes Observations (runners join and leave, lines start, are answered, are shed) and
// returns an Allowance. It is pure: time is passed to each call, it starts no goroutine, uses no
// randomness, and returns the same for the same calls. One goroutine owns it.
//
// This package holds the contract, the registry of policies, and what policies share: the Roster of
// a pool's runners with their pauses after sheds, and the division of a pool's limit. Each policy
// is a package below this one, with its own Config, and registers itself:
//
//   - headroom keeps iterations as long as interactive requests can bear. It is the default.
//   - aimd finds each runner's number of lines by what the runner sheds.
//   - fixed carries a set number of lines per runner. none and unlimited are its extremes.
//   - schedule follows a timetable of targets or of lines.
//
// Package builtin links all of them. A policy of another module is linked by importing its package;
// ExampleRegister shows one, and the module simulator/lab has policies to compare with. Package
// flowcontroltest checks that a policy keeps the contract.
//
// Every policy respects Retry-After: the runner that sent it gets no new line until that time is
// over, and a runner that sheds without it gets none for a moment.
package flowcontrol
