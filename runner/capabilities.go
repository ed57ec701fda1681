package runner

import "time"

// CapabilitiesPath serves [Capabilities]. A runner that starts up or shuts down answers 503.
const CapabilitiesPath = "/v1/capabilities"

// CapabilitiesTTL is the time for which a response may be cached, by the runner and by its clients.
const CapabilitiesTTL = 5 * time.Second

// Capabilities is the state of a runner and what it can do.
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

// LoadingModel is being loaded into GPU memory.
type LoadingModel struct {
	ID       string  `json:"id"`
	Progress float64 `json:"progress"` // 0 to 1
	ETA      int     `json:"eta"`      // seconds
}

// Resources is how full a runner is. Shares are from 0 to 1.
type Resources struct {
	GPUIDs             []int   `json:"gpuIds"`
	GPUMemoryTotalMB   int     `json:"gpuMemoryTotalMB"`
	GPUMemoryUsedMB    int     `json:"gpuMemoryUsedMB"`
	GPUMemoryFreeMB    int     `json:"gpuMemoryFreeMB"`
	GPUUtilization     float64 `json:"gpuUtilization"`
	KVCacheSizeMB      int     `json:"kvCacheSizeMB"`
	KVCacheUtilization float64 `json:"kvCacheUtilization"`
}

// Queue describes the waiting requests. At MaxDepth the runner answers 503.
type Queue struct {
	Depth     int     `json:"depth"`
	MaxDepth  int     `json:"maxDepth"`
	AvgWaitMs float64 `json:"avgWaitMs"`
	P95WaitMs float64 `json:"p95WaitMs"`
}

// Features lists the kinds of requests that a runner supports.
type Features struct {
	Streaming       bool `json:"streaming"`
	PrefixCaching   bool `json:"prefixCaching"`
	MultiTenant     bool `json:"multiTenant"`
	VisionInput     bool `json:"visionInput"`
	AudioInput      bool `json:"audioInput"`
	FunctionCalling bool `json:"functionCalling"`
}

// Health is the health that a runner reports.
type Health string

const (
	Healthy   Health = "healthy"
	Unhealthy Health = "unhealthy"
)

// HealthPath serves [HealthStatus], with 503 if the runner is not healthy.
const HealthPath = "/health"

// HealthStatus is the response to a liveness check.
type HealthStatus struct {
	Status       Health `json:"status"`
	Uptime       int64  `json:"uptime"` // seconds
	ModelsLoaded int    `json:"modelsLoaded"`
	QueueDepth   int    `json:"queueDepth"`
}
