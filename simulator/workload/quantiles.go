package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
)

// Quantiles is a distribution of lengths given by a table of its quantiles, log-linear in between.
type Quantiles struct {
	share []float64 // from 0 to 1, increasing
	log   []float64 // of the values
}

// quantile is a value and the share of lengths that do not exceed it.
type quantile struct {
	Share float64
	Value float64
}

// newQuantiles takes a table from the smallest value (share 0) to the largest (share 1).
func newQuantiles(table ...quantile) (Quantiles, error) {
	var q Quantiles
	for i, row := range table {
		if !(row.Value >= 1 && row.Value <= maxTokens) {
			return q, fmt.Errorf("quantile table: value %v at share %v: want from 1 to %d tokens",
				row.Value, row.Share, maxTokens)
		}
		if i > 0 && (!(row.Share > table[i-1].Share) || row.Value < table[i-1].Value) {
			return q, fmt.Errorf(
				"quantile table: share %v with value %v follows %v with %v: want shares that "+
					"increase and values that do not fall",
				row.Share, row.Value, table[i-1].Share, table[i-1].Value)
		}
		q.share = append(q.share, row.Share)
		q.log = append(q.log, portable.Log(row.Value))
	}
	if len(table) < 2 || table[0].Share != 0 || table[len(table)-1].Share != 1 {
		return q, fmt.Errorf("quantile table: want it to go from share 0 to share 1")
	}
	return q, nil
}

// At returns the value at a share.
func (q Quantiles) At(share float64) float64 {
	i, _ := slices.BinarySearch(q.share, share)
	i = min(max(i, 1), len(q.share)-1)
	part := (share - q.share[i-1]) / (q.share[i] - q.share[i-1])
	return portable.Exp(interpolate(q.log[i-1], q.log[i], part))
}

// draw draws a length.
func (q Quantiles) draw(rng *rand.Rand) int {
	return int(math.Round(q.At(rng.Float64())))
}

// quantiles is for tables of our own, at the usual shares: the smallest, 1, 10, 25, 50, 75, 90, 95
// and 99 %, and the largest.
func quantiles(values ...float64) Quantiles {
	at := []float64{0, 0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1}
	table := make([]quantile, len(values))
	for i, v := range values {
		table[i] = quantile{at[i], v}
	}
	q, err := newQuantiles(table...)
	if err != nil {
		panic(err)
	}
	return q
}
