// Package config is the daemon's one configuration file: the sections that each package defines for
// itself, put together, read strictly and explained.
//
// Values come from the packages' defaults, then the file, then settings given one by one (--set
// key.path=value and the flags that stand for one), later ones winning. Whatever can't be
// understood refuses to start: an unknown key is named with its full path, its file and line and
// the key that was probably meant; an unreadable value likewise. All faults are reported together,
// so that a file is mended in one round.
//
// Secrets never stand in the file. It names the environment variables that hold them.
package config

//go:generate go run ./internal/reference/generate ../docs
