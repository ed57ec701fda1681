// Package config composes the daemon's configuration file from the Config of each package, and
// reads, validates and documents it.
//
// Values are the packages' defaults, changed by the file, and then by single settings (--set
// key.path=value and other flags); later ones win. An unknown key or a value that cannot be read is
// an error with the place in the file, the path, and the key that was probably meant. All faults
// are reported together.
//
// The file never contains secrets. It names the environment variables that hold them.
//
// # A new key
//
// A key is a field of the Config of the package that uses it. The field needs a yaml tag, a doc
// comment, a default and a check in Validate. changes.go lists each key, or a section that contains
// it, as one that a running daemon applies (runTimeKeys) or that needs a restart (restartKeys); a
// test fails for a key that is in neither list. A key of the first kind takes effect only if its
// package reads it from its present settings, such as Server.config in api and Dispatcher.settings
// in dispatch.
package config

//go:generate go run ./internal/reference/generate ../docs
