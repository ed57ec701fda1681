package runner

// State is what a runner says of itself with its [Capabilities], as far as it says. It decides
// whether the runner takes requests. NaN and zero mean that the runner does not say.
type State struct {
	Starting  bool // or stopping: it answers 503
	Unhealthy bool
	// Queue is the number of requests that wait, MaxQueue the number that may.
	Queue, MaxQueue float64
	KVUsed          float64 // share of the KV cache in use
	// NotLoaded lists models that the runner knows and has not loaded.
	NotLoaded []string
}
