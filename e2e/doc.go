// Package e2e holds Tidefill to its promises from outside: the real binary as a process, official SDKs and raw sockets as
// clients, stub upstreams in the test, kills, full disks and damaged files in between.
//
// It is a module of its own, so that the SDKs don't weigh on the product's. The binary is built from the directory above, once
// per run; tests that don't measure time or kill run one with the race detector.
package e2e
