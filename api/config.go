package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Config limits what users may send and sets how long it is kept. Sizes are in bytes. Start from
// DefaultConfig.
type Config struct {
	// MaxBatchFileBytes limits the size of a batch input file; a larger upload is refused. At most
	// 4 GiB. Default: 200 MiB, as OpenAI's.
	MaxBatchFileBytes int64 `yaml:"max_batch_file_bytes"`
	// MaxBatchLines limits the lines of one batch; a batch of a longer file fails. Default:
	// 50,000, as OpenAI's.
	MaxBatchLines int `yaml:"max_batch_lines"`
	// MaxLineBytes limits one line of a batch input file, without its newline. The rest of a
	// longer line is skipped, and a batch of the file fails with a message that names the line.
	// Default: 16 MiB.
	MaxLineBytes int `yaml:"max_line_bytes"`
	// MaxFileBytes limits the size of a file of any other purpose. Default: 512 MiB, as OpenAI's.
	MaxFileBytes int64 `yaml:"max_file_bytes"`

	// TenantQuotaBytes limits the storage of each tenant: input files, result files and the parts
	// of uploads together. An upload or retry that does not fit is refused with 413; results are
	// always stored. 0: no limit. Default: 0.
	TenantQuotaBytes int64 `yaml:"tenant_quota_bytes"`
	// TenantQuotas replaces tenant_quota_bytes for single tenants, by name. 0: no limit.
	TenantQuotas map[string]int64 `yaml:"tenant_quotas"`

	// BatchFileRetention sets how long a batch input file is kept whose upload sets no expiry.
	// 0: until it is deleted. Default: 30 days.
	BatchFileRetention time.Duration `yaml:"batch_file_retention"`
	// BatchRetention sets how long an ended batch stays in listings. Its files expire by
	// themselves. 0: for ever. Default: 180 days.
	BatchRetention time.Duration `yaml:"batch_retention"`

	// MaxRequests limits the requests that are handled at once, uploads and event streams not
	// counted. A thirty-second as many files and parts, at least one, are received at once: each
	// takes up to 1 MiB of memory, and the memory of its custom_ids. Further ones wait for up to
	// 30s. Twice as many event streams may be open; a further one is refused. Default: 256.
	MaxRequests int `yaml:"max_requests"`

	// RequestsPerMinute limits the requests of each tenant within a minute, over all processes that
	// share Redis; further ones are refused with 429 and Retry-After. Without Redis each process
	// counts for itself. At most 1,000,000; 0: no limit. Default: 0.
	RequestsPerMinute int `yaml:"requests_per_minute"`

	// UnknownModels sets what becomes of a batch that names a model that no upstream serves: fail,
	// or wait until one serves it. It fails only once every upstream has answered since the start
	// of the daemon, and waits for a model that was served since then or that flowcontrol.pools
	// names. Use wait if a pool may have no replica, or if processes that share a store have
	// different upstreams. Default: fail.
	UnknownModels string `yaml:"unknown_models"`

	// Admission sets what becomes of a batch that can't meet its deadline even with every replica
	// that may be started: advisory creates it, and its verdict says so; strict refuses it with 400
	// deadline_infeasible and the nearest completion window that can be met. A batch is created if
	// nothing can be predicted. A request may ask for strict where this is advisory. Default:
	// advisory.
	Admission string `yaml:"admission"`

	Tuning `yaml:"tuning"`
}

// The values of Config.Admission.
const (
	AdvisoryAdmission = "advisory"
	StrictAdmission   = "strict"
)

// The values of Config.UnknownModels.
const (
	FailUnknownModels = "fail"
	WaitUnknownModels = "wait"
)

// Tuning holds what an operator rarely changes.
type Tuning struct {
	// OrphanAfter sets the age at which stored bytes that no file or batch refers to, such as a
	// crash can leave, are removed. It is also the interval of the search for them, which also runs
	// at each start. At least 1m; 0: never. Default: 24h, which leaves time to notice that the
	// database does not belong to the files.
	OrphanAfter time.Duration `yaml:"orphan_after"`

	// The following are no keys: tests set them.

	// QueueWait limits how long a request or upload waits for its turn. Then it is refused with
	// 503, or with 429 if its own tenant has used up its share. Event streams do not wait.
	QueueWait time.Duration `yaml:"-"`
	// MaxOptionsBytes limits the size of the `tidefill` object in a create request.
	MaxOptionsBytes int `yaml:"-"`
	// MaxPartBytes limits the size of one part of an upload in parts.
	MaxPartBytes int64 `yaml:"-"`
	// UploadTimeout limits the time from the creation of an upload in parts to its completion;
	// afterwards its parts are removed.
	UploadTimeout time.Duration `yaml:"-"`
	// IdempotencyRetention is the time for which a request that repeats an Idempotency-Key gets the
	// first answer again.
	IdempotencyRetention time.Duration `yaml:"-"`
	// SweepEvery is the interval at which expired files, uploads and batches are removed.
	SweepEvery time.Duration `yaml:"-"`
}

const (
	// queueWait is shorter than the timeouts of SDKs and proxies, which repeat what is refused.
	queueWait = 30 * time.Second
	// maxOptions holds the largest options that a request can have, with room for later ones.
	maxOptions = 64 << 10
	// maxPart and uploadTimeout are OpenAI's.
	maxPart, uploadTimeout = 64 << 20, time.Hour
	// idempotencyRetention outlasts the repetitions of any client, also after a day's outage.
	idempotencyRetention = 24 * time.Hour
	// sweepEvery is the interval at which files are removed. Expired ones are not shown meanwhile.
	sweepEvery = time.Minute
)

// tenantShare is the part of the requests, uploads and event streams at once that one tenant may
// use while there are keys of several, so that one client cannot lock out the others.
const tenantShare = 0.5

// maxUploads returns the number of files and parts that are received at once.
func (c Config) maxUploads() int { return max(1, c.MaxRequests/32) }

// maxStreams returns the number of event streams that may be open at once. They cost less than
// requests, and last long.
func (c Config) maxStreams() int { return 2 * c.MaxRequests }

// DefaultConfig returns the limits of the OpenAI API.
func DefaultConfig() Config {
	return Config{
		MaxBatchFileBytes:  200 << 20,
		MaxBatchLines:      50_000,
		MaxLineBytes:       16 << 20,
		MaxFileBytes:       512 << 20,
		BatchFileRetention: 30 * 24 * time.Hour,
		BatchRetention:     180 * 24 * time.Hour,
		MaxRequests:        256,
		UnknownModels:      FailUnknownModels,
		Admission:          AdvisoryAdmission,
		Tuning: Tuning{
			OrphanAfter:          24 * time.Hour,
			QueueWait:            queueWait,
			MaxOptionsBytes:      maxOptions,
			MaxPartBytes:         maxPart,
			UploadTimeout:        uploadTimeout,
			IdempotencyRetention: idempotencyRetention,
			SweepEvery:           sweepEvery,
		},
	}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	positive := func(key string, n int64) { fault(n > 0, "%s is %d; set it above 0", key, n) }

	positive("max_batch_file_bytes", c.MaxBatchFileBytes)
	fault(c.MaxBatchFileBytes < 4<<30, "max_batch_file_bytes is %d; set it below 4 GiB",
		c.MaxBatchFileBytes)
	positive("max_batch_lines", int64(c.MaxBatchLines))
	positive("max_line_bytes", int64(c.MaxLineBytes))
	positive("max_file_bytes", c.MaxFileBytes)
	fault(c.TenantQuotaBytes >= 0, "tenant_quota_bytes is %d; set it to 0 or more",
		c.TenantQuotaBytes)
	for _, tenant := range slices.Sorted(maps.Keys(c.TenantQuotas)) {
		err := checkTenant(tenant)
		fault(err == nil, "tenant_quotas: %v", err)
		fault(c.TenantQuotas[tenant] >= 0, "tenant_quotas.%s is %d; set it to 0 or more", tenant,
			c.TenantQuotas[tenant])
	}
	positive("max_requests", int64(c.MaxRequests))
	fault(c.RequestsPerMinute >= 0 && c.RequestsPerMinute <= maxRequestsPerMinute,
		"requests_per_minute is %d; set it to 0, for no limit, or to at most %d",
		c.RequestsPerMinute, maxRequestsPerMinute)
	fault(c.UnknownModels == FailUnknownModels || c.UnknownModels == WaitUnknownModels,
		"unknown_models is %q; set it to fail or wait", c.UnknownModels)
	fault(c.Admission == AdvisoryAdmission || c.Admission == StrictAdmission,
		"admission is %q; set it to advisory or strict", c.Admission)
	fault(c.BatchFileRetention >= 0, "batch_file_retention is %v; set it to 0 or more",
		c.BatchFileRetention)
	fault(c.BatchRetention >= 0, "batch_retention is %v; set it to 0 or more", c.BatchRetention)
	fault(c.OrphanAfter == 0 || c.OrphanAfter >= time.Minute,
		"tuning.orphan_after is %v; set it to 1m or more, or to 0", c.OrphanAfter)
	return errors.Join(faults...)
}

// quotaOf returns how many bytes a tenant may store; 0: no limit.
func (c Config) quotaOf(tenant string) int64 {
	if own, ok := c.TenantQuotas[tenant]; ok {
		return own
	}
	return c.TenantQuotaBytes
}
