// Package live runs a scenario of the simulator in real time: emulated runners and the daemon as
// processes of their own, a Prometheus, and users behind a router that sends them to the runners.
// Traffic and batch lines are those of the simulation with the same seed, so its prediction can be
// compared with what happens.
package live
