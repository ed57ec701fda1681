package clusterscale

import "time"

// Times of PostgreSQL were measured by pg_stat_statements on two shared cores, with the statements
// of a transaction added up. They are CPU: everything was in memory.
const (
	registerCost      = 300 * time.Microsecond // of a segment
	registerChunkCost = 25 * time.Microsecond  // for each chunk in it
	claimCost         = 350 * time.Microsecond
	fenceCost         = 250 * time.Microsecond
	finishCost        = 60 * time.Microsecond
	finishChunkCost   = 30 * time.Microsecond
	postCost          = 200 * time.Microsecond
	postBatchCost     = 15 * time.Microsecond
	pollCost          = 75 * time.Microsecond
	renewCost         = 60 * time.Microsecond
	leadCost          = 80 * time.Microsecond // confirms a leadership
	learnedCost       = 250 * time.Microsecond
	batchStepCost     = 80 * time.Microsecond // each of a batch's transactions
	userCost          = 100 * time.Microsecond

	// batchSteps are the transactions from the creation of a batch to its end, besides those of its
	// chunks.
	batchSteps = 30

	daemonCost = 42 * time.Microsecond // CPU of a daemon for each line

	// flushTime is the time that a commit waits for the disk of a managed database that writes to a
	// second zone. Commits that come meanwhile share the next one.
	flushTime = 2 * time.Millisecond
	cores     = 4.0 // of the database

	// putMedian and putLate are the time to store a segment in the same region: half of them, and
	// 99 of 100. Published measurements of Amazon S3 Standard.
	putMedian, putLate = 25 * time.Millisecond, 200 * time.Millisecond
	// Published limits of Amazon S3 for a prefix that has not been split.
	maxWrites, maxReads = 3500.0, 5500.0

	resultBytes = 700.0
	perSegment  = 8192.0 // records that start a commit at once
	chunkLines  = 1024.0

	lease         = 15 * time.Second
	resultsMemory = 8 << 20 // of dispatch.memory
	queueBytes    = 64 << 20
	// claimed chunks of one claim last for about this long, at most maxClaimed
	claimsLast  = 4 * time.Second
	maxClaimed  = 64.0
	finishEvery = 3 * time.Second
	// compactCount segments become one; each byte is written about twice more.
	compactCount = 16.0
)
