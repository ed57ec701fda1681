package live

// Topic is what an event is about.
type Topic string

const (
	// Batches have changed in the store: they were created, cancelled, paused, or brought to
	// another state.
	Batches Topic = "batches"
	// Progress of batches was posted.
	Progress Topic = "progress"
	// Leading: a process has given up the leadership of runners and models.
	Leading Topic = "leading"
	// Scaling: other numbers of replicas were decided.
	Scaling Topic = "scaling"
)

// Events wake other processes. Any event may be lost, come late, or come twice.
type Events interface {
	// Emit sends an event to the subscribers of all processes. It does not wait, and the ones of
	// this process are called before it returns.
	Emit(topic Topic, ids ...string)
	// Subscribe has take called with each event, until stop returns. Without ids anything may have
	// changed: events were missed. take must not block, and is called by several goroutines.
	Subscribe(take func(topic Topic, ids []string)) (stop func())
}
