package runner

import "time"

// CapabilitiesPath serves [Capabilities]; a runner that is starting up or
// shutting down answers 503.
const CapabilitiesPath = "/v1/capabilities"

// CapabilitiesTTL is how long a reading may be served again, by the runner and
// by whoever asks it.
const CapabilitiesTTL = 5 * time.Second

// Capabilities is a runner's state and what it can do.
type Capabilities struct {
	RunnerType   string    `json:"runnerType"`
	RunnerID     string    `json:"runnerId"`
	Models       Models    `json:"models"`
	Resources    Resources `json:"resources"`
	Queue        Queue     `json:"queue"`
	Capabilities Features  `json:"capabilities"`
	Health       Health    `json:"health"`
}

// Models lists what a runner serves, is loading, and could load.
type Models struct {
	Loaded    []LoadedModel  `json:"loaded"`
	Loading   []LoadingModel `json:"loading"`
	Available []string       `json:"available"`
}

// LoadedModel is ready to serve.
type LoadedModel struct {
	ID            string `json:"id"`
	Quantization  string `json:"quantization,omitempty"`
	ContextLength int    `json:"contextLength"` // tokens
	LoadedAt      int64  `json:"loadedAt"`      // Unix seconds
	GPUMemoryMB   int    `json:"gpuMemoryMB"`
}

// LoadingModel is on its way into GPU memory.
type LoadingModel struct {
	ID       string  `json:"id"`
	Progress float64 `json:"progress"` // 0 to 1
	ETA      int     `json:"eta"`      // seconds
}

// Resources tells how full a runner is. Shares go from 0 to 1.
type Resources struct {
	GPUIDs             []int   `json:"gpuIds"`
	GPUMemoryTotalMB   int     `json:"gpuMemoryTotalMB"`
	GPUMemoryUsedMB    int     `json:"gpuMemoryUsedMB"`
	GPUMemoryFreeMB    int     `json:"gpuMemoryFreeMB"`
	GPUUtilization     float64 `json:"gpuUtilization"`
	KVCacheSizeMB      int     `json:"kvCacheSizeMB"`
	KVCacheUtilization float64 `json:"kvCacheUtilization"`
}

// Queue tells of requests that wait. At MaxDepth the runner answers 503.
type Queue struct {
	Depth     int     `json:"depth"`
	MaxDepth  int     `json:"maxDepth"`
	AvgWaitMs float64 `json:"avgWaitMs"`
	P95WaitMs float64 `json:"p95WaitMs"`
}

// Features tells what kinds of request a runner takes.
type Features struct {
	Streaming       bool `json:"streaming"`
	PrefixCaching   bool `json:"prefixCaching"`
	MultiTenant     bool `json:"multiTenant"`
	VisionInput     bool `json:"visionInput"`
	AudioInput      bool `json:"audioInput"`
	FunctionCalling bool `json:"functionCalling"`
}

// Health is a runner's own word on itself.
type Health string

const (
	Healthy   Health = "healthy"
	Unhealthy Health = "unhealthy"
)

// HealthPath serves [HealthStatus], with 503 when the runner is not healthy.
const HealthPath = "/health"

// HealthStatus is the answer to a liveness check.
type HealthStatus struct {
	Status       Health `json:"status"`
	Uptime       int64  `json:"uptime"` // seconds
	ModelsLoaded int    `json:"modelsLoaded"`
	QueueDepth   int    `json:"queueDepth"`
}
