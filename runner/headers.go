package runner

// Headers of an inference request.
const (
	HeaderCacheMode = "X-Cache-Mode" // CacheMode
	HeaderCacheTag  = "X-Cache-Tag"  // scope of cache entries; at most MaxCacheTag characters
	HeaderTenant    = "X-Tenant-ID"
	HeaderPriority  = "X-Priority" // Priority
)

// Headers of an inference response. A streamed response sends them with the first token, and the
// GPU time, which is known only at the end, as a trailer.
const (
	HeaderCacheHit          = "X-Cache-Hit"           // true or false
	HeaderCacheTokensReused = "X-Cache-Tokens-Reused" // prompt tokens found in the cache
	HeaderQueueWaitMs       = "X-Queue-Wait-Ms"
	HeaderGPUTimeMs         = "X-GPU-Time-Ms"
)

// MaxCacheTag bounds the length of HeaderCacheTag.
const MaxCacheTag = 64

// CacheMode is how a request uses the prefix cache.
type CacheMode string

const (
	CachePrefix CacheMode = "prefix"
	CacheNone   CacheMode = "none"
	CacheAuto   CacheMode = "auto"
)

// Priority orders a request in the runner's queue.
type Priority string

const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)
