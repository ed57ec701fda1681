package live

// Medium is a medium that processes share, such as Redis. A backend that has one uses it as its
// [store.ProgressBoard], and has it found there.
type Medium interface {
	Snapshots
	Events
	Windows
	// Away returns why the medium is not used at present; nil: it is.
	Away() error
}
