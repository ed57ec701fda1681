package clusterscale

import (
	"fmt"
	"math"
	"time"
)

// Load is what a cluster does.
type Load struct {
	Pools, Processes int
	Lines            float64       // per second, over all pools
	BatchLines       float64       // mean lines of a batch
	Commit           time.Duration // the time for which results are gathered
	Polls            float64       // requests of users per second
}

// DefaultLoad is the cluster that docs/designs/cluster-scale.md describes.
var DefaultLoad = Load{Pools: 200, Processes: 8, Lines: 20_000, BatchLines: 5000,
	Commit: 500 * time.Millisecond, Polls: 100}

// Class is a kind of transactions.
type Class struct {
	Name      string
	PerSecond float64 // over all processes
	Cost      time.Duration
	Write     bool
}

// poolsEach returns the pools of a process.
func (l Load) poolsEach() float64 {
	return math.Ceil(float64(l.Pools) / float64(l.Processes))
}

func (l Load) linesEach() float64 { return l.Lines / float64(l.Processes) }

// segmentsEach returns the commits of a process per second.
func (l Load) segmentsEach() float64 {
	return max(1/l.Commit.Seconds(), l.linesEach()/perSegment)
}

// chunksInSegment returns the number of chunks that have records in one segment: the one that each
// pool works on, and those that begin meanwhile.
func (l Load) chunksInSegment() float64 {
	inSegment := l.linesEach() / l.segmentsEach()
	return min(inSegment, l.poolsEach()+inSegment/chunkLines)
}

// Transactions lists what all processes ask the database.
func (l Load) Transactions() []Class {
	p := float64(l.Processes)
	chunks := l.Lines / chunkLines // per second
	chunksOfPool := chunks / float64(l.Pools)
	claimed := min(max(1, chunksOfPool*claimsLast.Seconds()), maxClaimed)
	claims := chunks / claimed
	ends := min(chunks, p/finishEvery.Seconds())
	batches := l.Lines / l.BatchLines
	per := func(base, each time.Duration, n float64) time.Duration {
		return base + time.Duration(n*float64(each))
	}
	return []Class{
		{Name: "registrations of segments", PerSecond: p * l.segmentsEach(), Write: true,
			Cost: per(registerCost, registerChunkCost, l.chunksInSegment())},
		{Name: "claims", PerSecond: claims, Cost: claimCost, Write: true},
		{Name: "fences", PerSecond: claims, Cost: fenceCost, Write: true},
		{Name: "ends of chunks", PerSecond: ends, Write: true,
			Cost: per(finishCost, finishChunkCost, chunks/ends)},
		{Name: "posts of progress", PerSecond: p / 2, Write: true,
			Cost: per(postCost, postBatchCost, l.poolsEach())},
		{Name: "polls", PerSecond: p / 4, Cost: pollCost},
		{Name: "renewals of leases", PerSecond: p / (lease.Seconds() / 4), Cost: renewCost,
			Write: true},
		{Name: "confirmed leaderships", PerSecond: p / (lease.Seconds() / 4), Cost: leadCost},
		{Name: "looks at other leaders", PerSecond: l.looks(), Cost: leadCost},
		{Name: "what was learned", PerSecond: p / 5, Cost: learnedCost, Write: true},
		{Name: "batches, besides their chunks", PerSecond: batches * batchSteps,
			Cost: batchStepCost, Write: true},
		{Name: "users", PerSecond: l.Polls, Cost: userCost},
	}
}

// looks returns the number of times a second that the processes look who leads what they don't.
func (l Load) looks() float64 {
	if l.Processes == 1 {
		return 0
	}
	return float64(l.Processes)
}

// Resource is something that can be full.
type Resource struct {
	Name, Detail string
	Share        float64
}

// Resources returns the loads of what may be full first.
func (l Load) Resources() []Resource {
	cpu, writes := 0.0, 0.0
	for _, c := range l.Transactions() {
		cpu += c.PerSecond * c.Cost.Seconds()
		if c.Write {
			writes += c.PerSecond
		}
	}
	puts, gets := l.requests()
	daemon := l.linesEach() * daemonCost.Seconds()
	segment := l.linesEach() / l.segmentsEach() * resultBytes
	cycle := putMedian.Seconds() + 2*flushTime.Seconds()
	return []Resource{
		{"CPU of PostgreSQL", fmt.Sprintf("%.2f of %.0f cores", cpu, cores), cpu / cores},
		{"flushes of PostgreSQL", fmt.Sprintf("%.0f commits/s", writes),
			min(writes, 1/flushTime.Seconds()) * flushTime.Seconds()},
		{"writes to the bucket", fmt.Sprintf("%.0f/s", puts), puts / maxWrites},
		{"reads of the bucket", fmt.Sprintf("%.0f/s", gets), gets / maxReads},
		{"CPU of a daemon", fmt.Sprintf("%.2f of 4 cores", daemon), daemon / 4},
		{"commits of a daemon", fmt.Sprintf("%.1f/s of %.0f KiB", l.segmentsEach(), segment/1024),
			l.segmentsEach() * cycle},
	}
}

// requests returns the writes to the bucket and reads of it, per second.
func (l Load) requests() (puts, gets float64) {
	segments := float64(l.Processes) * l.segmentsEach()
	batches := l.Lines / l.BatchLines
	// Input, index and order, an output file, and their parts of 8 MiB.
	puts = segments*(1+1/compactCount) + batches*(6+l.BatchLines*resultBytes/(8<<20))
	// The lines of a chunk are read with one request. Its journal is spread over the segments that
	// are written while its pool works on it. Compaction reads each once and leaves a sixteenth of
	// them; finalizing reads what is left twice.
	lasts := chunkLines / (l.Lines / float64(l.Pools)) // seconds
	ranges := max(1, lasts*l.segmentsEach()/compactCount+1)
	gets = segments + l.Lines/chunkLines*(1+2*ranges) + batches*4
	return puts, gets
}

// FirstFull returns the resource that is full first if the lines grow, and at which multiple. The
// flushes are left out: commits share them.
func (l Load) FirstFull() (name string, times float64) {
	for times = 1; times < 10_000; times *= 1.02 {
		more := l
		more.Lines *= times
		more.Polls *= times
		for _, r := range more.Resources() {
			if r.Share >= 0.8 && r.Name != "flushes of PostgreSQL" {
				return r.Name, times
			}
		}
	}
	return "nothing", times
}

// Failures says what some failures cost.
func (l Load) Failures() []string {
	moved := l.poolsEach()
	claims := time.Duration(moved * float64(claimCost+fenceCost+leadCost))
	rate := l.linesEach() * resultBytes
	until := resultsMemory / rate
	pause := func(outage float64) float64 { return max(0, outage-min(until, lease.Seconds())) }
	return []string{
		fmt.Sprintf("A daemon is killed: %.0f pools stand still for at most %v and 2 s more; "+
			"taking them over needs %v of the database's CPU; the lines in flight and %.0f "+
			"answers of one commit interval are sent again.", moved, lease,
			claims.Round(time.Millisecond), l.linesEach()*l.Commit.Seconds()),
		fmt.Sprintf("PostgreSQL fails over in 20 s: a daemon's memory for results holds %.1f s, "+
			"so lines stop for %.0f s.", until, pause(20)),
		fmt.Sprintf("The bucket stalls for 60 s: lines stop for %.0f s; nothing is lost.",
			60-min(until, 60)),
	}
}
