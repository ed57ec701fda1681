package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Config bounds what users may send and says how long it is kept. Sizes are bytes.
type Config struct {
	// MaxBatchFileBytes bounds a batch input file. Default 200 MiB, as OpenAI's; at most 4 GiB.
	MaxBatchFileBytes int64 `yaml:"max_batch_file_bytes"`
	// MaxBatchLines bounds the requests of one batch. Default 50,000, as OpenAI's.
	MaxBatchLines int `yaml:"max_batch_lines"`
	// MaxLineBytes bounds one line of a batch input file, without its newline. The rest of a longer
	// line is skipped, and the line is reported when a batch is made of the file. Default 16 MiB.
	MaxLineBytes int `yaml:"max_line_bytes"`
	// MaxFileBytes bounds a file of any other purpose. Default 512 MiB, as OpenAI's.
	MaxFileBytes int64 `yaml:"max_file_bytes"`
	// MaxPartBytes bounds one part of an upload in parts. Default 64 MiB, as OpenAI's.
	MaxPartBytes int64 `yaml:"max_part_bytes"`

	// MaxOptionsBytes bounds the `tidefill` object of a create request. Default 64 KiB.
	MaxOptionsBytes int `yaml:"max_options_bytes"`

	// TenantQuotaBytes bounds what a tenant keeps in files, inputs and results, and in parts of
	// uploads. Uploads and retries that do not fit are refused (413); results are always kept.
	// Default 0: no bound.
	TenantQuotaBytes int64 `yaml:"tenant_quota_bytes"`
	// TenantQuotas holds quotas of single tenants, which stand in for tenant_quota_bytes; 0: no
	// bound.
	TenantQuotas map[string]int64 `yaml:"tenant_quotas"`

	// BatchFileLife is how long a batch input file is kept when its upload does not say. Default 30
	// days; 0: until deleted.
	BatchFileLife time.Duration `yaml:"batch_file_life"`
	// MaxRequests bounds the requests that are handled at once, apart from uploads of files and
	// event streams. Default 256.
	MaxRequests int `yaml:"max_requests"`
	// MaxConcurrentUploads bounds the files and parts that are taken in at once, up to 1 MiB of
	// memory each, and what their line ids take. Default 8.
	MaxConcurrentUploads int `yaml:"max_concurrent_uploads"`
	// MaxStreams bounds the event streams that are open at once. Default 512.
	MaxStreams int `yaml:"max_streams"`
	// TenantShare is the part of these three that one tenant may take while there are keys of
	// several tenants. Default 0.5; at most 1: all.
	TenantShare float64 `yaml:"tenant_share"`
	// QueueWait is how long a request or upload beyond them waits for its turn before it gets 503,
	// or 429 where its own tenant has taken its share. Streams don't wait. Default 30 seconds.
	QueueWait time.Duration `yaml:"queue_wait"`

	// UploadLife is how long an upload in parts may take from its creation to its completion.
	// Default 1 hour.
	UploadLife time.Duration `yaml:"upload_life"`
	// IdempotencyLife is how long an Idempotency-Key stands for its first answer. Default 24 hours.
	IdempotencyLife time.Duration `yaml:"idempotency_life"`

	// BatchRetention is how long ended batches stay in listings. Their files expire apart. Default
	// 180 days; 0: for ever.
	BatchRetention time.Duration `yaml:"batch_retention"`
	// SweepEvery is how often expired files, stale uploads and old batches are removed. Default 1
	// minute.
	SweepEvery time.Duration `yaml:"sweep_every"`
	// OrphanAfter is how old bytes must be to be removed when nothing knows them any more, as a
	// crash may leave some. It is also how often they are looked for, and at every start. Default
	// 24 hours, which leaves time to notice that the wrong database was put beside them; at least 1
	// minute; 0: never.
	OrphanAfter time.Duration `yaml:"orphan_after"`
}

// DefaultConfig returns the limits of the OpenAI API.
func DefaultConfig() Config {
	return Config{
		MaxBatchFileBytes:    200 << 20,
		MaxBatchLines:        50_000,
		MaxLineBytes:         16 << 20,
		MaxFileBytes:         512 << 20,
		MaxPartBytes:         64 << 20,
		MaxOptionsBytes:      64 << 10,
		MaxRequests:          256,
		MaxConcurrentUploads: 8,
		MaxStreams:           512,
		TenantShare:          0.5,
		QueueWait:            30 * time.Second,
		BatchFileLife:        30 * 24 * time.Hour,
		UploadLife:           time.Hour,
		IdempotencyLife:      24 * time.Hour,
		BatchRetention:       180 * 24 * time.Hour,
		SweepEvery:           time.Minute,
		OrphanAfter:          24 * time.Hour,
	}
}

// Validate reports every field that can't be served.
func (c Config) Validate() error {
	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	positive := func(key string, n int64) { fault(n > 0, "%s is %d; set it above 0", key, n) }
	lasting := func(key string, d time.Duration) {
		fault(d > 0, "%s is %v; set it above 0", key, d)
	}

	positive("max_batch_file_bytes", c.MaxBatchFileBytes)
	fault(c.MaxBatchFileBytes < 4<<30, "max_batch_file_bytes is %d; set it below 4 GiB",
		c.MaxBatchFileBytes)
	positive("max_batch_lines", int64(c.MaxBatchLines))
	positive("max_line_bytes", int64(c.MaxLineBytes))
	positive("max_file_bytes", c.MaxFileBytes)
	positive("max_part_bytes", c.MaxPartBytes)
	positive("max_options_bytes", int64(c.MaxOptionsBytes))
	fault(c.TenantQuotaBytes >= 0, "tenant_quota_bytes is %d; set it to 0 or more",
		c.TenantQuotaBytes)
	for _, tenant := range slices.Sorted(maps.Keys(c.TenantQuotas)) {
		err := checkTenant(tenant)
		fault(err == nil, "tenant_quotas: %v", err)
		fault(c.TenantQuotas[tenant] >= 0, "tenant_quotas.%s is %d; set it to 0 or more", tenant,
			c.TenantQuotas[tenant])
	}
	positive("max_requests", int64(c.MaxRequests))
	positive("max_concurrent_uploads", int64(c.MaxConcurrentUploads))
	positive("max_streams", int64(c.MaxStreams))
	fault(c.TenantShare > 0 && c.TenantShare <= 1, "tenant_share is %v; set it above 0, up to 1",
		c.TenantShare)
	lasting("queue_wait", c.QueueWait)
	fault(c.BatchFileLife >= 0, "batch_file_life is %v; set it to 0 or more", c.BatchFileLife)
	lasting("upload_life", c.UploadLife)
	lasting("idempotency_life", c.IdempotencyLife)
	fault(c.BatchRetention >= 0, "batch_retention is %v; set it to 0 or more", c.BatchRetention)
	lasting("sweep_every", c.SweepEvery)
	fault(c.OrphanAfter == 0 || c.OrphanAfter >= time.Minute,
		"orphan_after is %v; set it to 1m or more, or to 0", c.OrphanAfter)
	return errors.Join(faults...)
}

// quotaOf returns how many bytes a tenant may keep; 0: no bound.
func (c Config) quotaOf(tenant string) int64 {
	if own, ok := c.TenantQuotas[tenant]; ok {
		return own
	}
	return c.TenantQuotaBytes
}
