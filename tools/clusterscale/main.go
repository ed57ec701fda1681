// Command clusterscale computes what a cluster of daemons asks PostgreSQL and a bucket, how long
// that takes, and what saturates first. The requests follow from the code of the store; their costs
// were measured, or are published for what can't be measured on one machine (see costs.go).
//
//	go run ./clusterscale                       # 200 pools, 20,000 lines per second
//	go run ./clusterscale -pools 1 -lines 6500 -processes 1   # what a machine can check
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	load := defaultLoad
	flag.IntVar(&load.Pools, "pools", load.Pools, "pools")
	flag.IntVar(&load.Processes, "processes", load.Processes, "daemons that dispatch")
	flag.Float64Var(&load.Lines, "lines", load.Lines, "lines per second, over all pools")
	flag.Float64Var(&load.BatchLines, "batch", load.BatchLines, "mean lines of a batch")
	flag.DurationVar(&load.Commit, "commit", load.Commit, "the time for which results are gathered")
	flag.Float64Var(&load.Polls, "polls", load.Polls, "requests of users per second")
	flag.Parse()
	if load.Pools < 1 || load.Processes < 1 || !(load.Lines > 0) || !(load.BatchLines >= 1) ||
		load.Commit <= 0 {
		fmt.Fprintln(os.Stderr, "clusterscale: all values must be above 0")
		os.Exit(2)
	}
	print(load)
}

func print(load Load) {
	fmt.Printf("%d pools, %d daemons, %.0f lines per second, batches of %.0f lines, "+
		"commits after %v\n\n", load.Pools, load.Processes, load.Lines, load.BatchLines,
		load.Commit)
	fmt.Println("| Transactions | Per second | CPU of PostgreSQL |")
	fmt.Println("| --- | --- | --- |")
	sum := Class{Name: "together"}
	for _, c := range load.Transactions() {
		fmt.Printf("| %s | %.1f | %.1f %% of a core |\n", c.Name, c.PerSecond,
			100*c.PerSecond*c.Cost.Seconds())
		sum.PerSecond += c.PerSecond
		sum.Cost += time.Duration(c.PerSecond * float64(c.Cost))
	}
	fmt.Printf("| together | %.1f | %.1f %% of a core |\n\n", sum.PerSecond,
		100*sum.Cost.Seconds())
	waits := Simulate(load, time.Minute, 1)
	fmt.Printf("commit of a result: median %v, p99 %v after its answer\n",
		waits.Commit.at(0.5), waits.Commit.at(0.99))
	fmt.Printf("transaction: median %v, p99 %v\n", waits.Transaction.at(0.5),
		waits.Transaction.at(0.99))
	fmt.Printf("longest time between renewals of a lease: %v of %v\n\n", waits.Renewal.at(1), lease)
	fmt.Println("| Resource | Load | Of its capacity |")
	fmt.Println("| --- | --- | --- |")
	for _, r := range load.Resources() {
		fmt.Printf("| %s | %s | %.1f %% |\n", r.Name, r.Detail, 100*r.Share)
	}
	first, times := load.FirstFull()
	fmt.Printf("\nfirst full: %s, at %.0f times this load\n\n", first, times)
	for _, f := range load.Failures() {
		fmt.Println("- " + f)
	}
}
