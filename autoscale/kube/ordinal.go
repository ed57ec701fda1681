package kube

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Order returns the order in which the controller of a pool's target ends its replicas, the first
// to end before the others. Nil: it goes by deletion costs, see SetDeletionCosts. A StatefulSet
// ends the pod with the highest ordinal, whatever that does.
func (c *Cluster) Order(pool string) func(a, b string) int {
	f := c.follower(pool)
	if f == nil || f.cfg.Target.Name == "" || f.cfg.usesCosts() {
		return nil
	}
	return func(a, b string) int {
		return cmp.Or(cmp.Compare(ordinal(b), ordinal(a)), cmp.Compare(b, a))
	}
}

// ordinal returns the number at the end of a pod's name. A replica that has no pod yet would be the
// first to go.
func ordinal(replica string) int {
	if IsMissing(replica) {
		return math.MaxInt
	}
	number, err := strconv.Atoi(replica[strings.LastIndexByte(replica, '-')+1:])
	if err != nil {
		return -1
	}
	return number
}
