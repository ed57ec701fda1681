//go:build !linux

package cluster

// machine is not known on other systems.
func machine() string { return "" }
