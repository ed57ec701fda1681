// Package routing compares the router expected-load, which is package dispatch/plan/routing, with
// others on recorded traffic, without batch work. It has tests only.
package routing
