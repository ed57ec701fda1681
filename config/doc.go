// Package config composes the daemon's configuration file from the Config of each package, and
// reads, validates and documents it.
//
// Values are the packages' defaults, changed by the file, and then by single settings (--set
// key.path=value and other flags); later ones win. An unknown key or a value that cannot be read is
// an error with the place in the file, the path, and the key that was probably meant. All faults
// are reported together.
//
// The file never contains secrets. It names the environment variables that hold them.
package config

//go:generate go run ./internal/reference/generate ../docs
