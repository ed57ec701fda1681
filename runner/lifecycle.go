package runner

// Routes that change the models of a runner. Each requires a signed operation token.
const (
	LoadPath       = "/v1/models/load" // POST; GET LoadPath/{taskId} returns the task
	UnloadPath     = "/v1/models/unload"
	CacheFlushPath = "/v1/cache/flush"
)

// LoadRequest asks for a model to be loaded; the response is 202 with a LoadTask.
type LoadRequest struct {
	ModelID           string `json:"modelId"`
	Quantization      string `json:"quantization,omitempty"` // awq-4bit, gptq-4bit, fp16, bf16
	MaxContextLength  int    `json:"maxContextLength,omitempty"`
	GPUMemoryBudgetMB int    `json:"gpuMemoryBudgetMB,omitempty"`
	EvictModel        string `json:"evictModel,omitempty"` // unloaded first
	VerifiedOpToken   string `json:"verifiedOpToken"`
}

// LoadStatus is the state of a LoadTask.
type LoadStatus string

const (
	LoadRunning   LoadStatus = "loading"
	LoadCompleted LoadStatus = "completed"
	LoadFailed    LoadStatus = "failed"
)

// LoadTask is the progress or the result of loading a model.
type LoadTask struct {
	TaskID          string     `json:"taskId"`
	Status          LoadStatus `json:"status"`
	Progress        *float64   `json:"progress,omitempty"` // 0 to 1, while loading
	ETA             int        `json:"eta,omitempty"`      // seconds, while loading
	ModelID         string     `json:"modelId,omitempty"`
	GPUMemoryUsedMB int        `json:"gpuMemoryUsedMB,omitempty"`
	LoadTimeMs      int64      `json:"loadTimeMs,omitempty"`
	Error           string     `json:"error,omitempty"`
}

// UnloadRequest asks for a model's memory to be freed.
type UnloadRequest struct {
	ModelID         string `json:"modelId"`
	VerifiedOpToken string `json:"verifiedOpToken"`
}

// Unloaded is what unloading freed.
type Unloaded struct {
	ModelID          string `json:"modelId"`
	GPUMemoryFreedMB int    `json:"gpuMemoryFreedMB"`
	KVCacheFlushed   bool   `json:"kvCacheFlushed"`
}

// FlushScope selects the cache entries that a FlushRequest removes.
type FlushScope string

const (
	FlushAll    FlushScope = "all"
	FlushModel  FlushScope = "model"
	FlushTenant FlushScope = "tenant"
	FlushTag    FlushScope = "tag"
)

// FlushRequest asks for cache entries to be removed.
type FlushRequest struct {
	Scope           FlushScope `json:"scope"`
	TenantID        string     `json:"tenantId,omitempty"`
	ModelID         string     `json:"modelId,omitempty"`
	Tag             string     `json:"tag,omitempty"`
	VerifiedOpToken string     `json:"verifiedOpToken"`
}

// Flushed is what a flush removed.
type Flushed struct {
	Flushed        bool `json:"flushed"`
	EntriesRemoved int  `json:"entriesRemoved"`
	MemoryFreedMB  int  `json:"memoryFreedMB"`
}
