package keda

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale"
)

// objects are the ScaledObjects that ask, one for each pool and role: two that scale their targets
// by the same number would start twice as many replicas.
type objects struct {
	forgetAfter time.Duration
	declare     func(pool string, of autoscale.Declaration)

	mu     sync.Mutex
	claims map[poolRole]*claim
}

func newObjects(
	forgetAfter time.Duration, declare func(string, autoscale.Declaration),
) *objects {
	return &objects{forgetAfter: forgetAfter, declare: declare, claims: map[poolRole]*claim{}}
}

type poolRole struct {
	pool string
	role role
}

// claim is what a ScaledObject says of a pool.
type claim struct {
	object   string
	declared autoscale.Declaration
	replaced *autoscale.Declaration // what it said before; nil: nothing else
	last     time.Time              // of the last call that said declared
	streams  int                    // that are open
}

// settleTime is the time after which a ScaledObject that has not repeated what it says can return
// to what it said earlier. Two of its triggers that differ would otherwise replace each other.
const settleTime = time.Minute

// see notes that a ScaledObject has asked, and declares what it says of its pool. It returns an
// error if another one asks for the pool.
func (o *objects) see(now time.Time, r reference) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := poolRole{r.pool, r.role}
	c := o.claims[key]
	switch {
	case c == nil || c.object != r.object && o.forgotten(now, c):
		c = &claim{object: r.object}
		o.claims[key] = c
	case c.object != r.object:
		return status.Errorf(codes.FailedPrecondition, "ScaledObject %s: the %s of pool %s are "+
			"scaled by ScaledObject %s already, and two of them would start twice as many; remove "+
			"one, or name another pool (a removed one is forgotten after %v)", r.object, r.role,
			r.pool, c.object, o.forgetAfter)
	case c.declared.Equal(r.Declaration):
	case c.replaced != nil && c.replaced.Equal(r.Declaration) && now.Sub(c.last) < settleTime:
		return status.Errorf(codes.FailedPrecondition, "ScaledObject %s: two of its triggers say "+
			"different things of the %s of pool %s; remove one (after an edit, wait %v)", r.object,
			r.role, r.pool, settleTime)
	default:
		before := c.declared
		c.replaced = &before
	}
	c.declared, c.last = r.Declaration, now
	if r.role == runners {
		o.declare(r.pool, r.Declaration)
	}
	return nil
}

// hold keeps the claim of a ScaledObject for as long as a stream of it is open.
func (o *objects) hold(r reference) (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.claims[poolRole{r.pool, r.role}]
	if c == nil || c.object != r.object {
		return func() {} // forgotten since
	}
	c.streams++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		c.streams--
		c.last = time.Now()
	}
}

func (o *objects) forgotten(now time.Time, c *claim) bool {
	return c.streams == 0 && now.Sub(c.last) >= o.forgetAfter
}

// forget takes back what ScaledObjects have said that do not ask any more.
func (o *objects) forget(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, c := range o.claims {
		if !o.forgotten(now, c) {
			continue
		}
		delete(o.claims, key)
		if key.role == runners {
			o.declare(key.pool, autoscale.Declaration{})
		}
	}
}

// count returns the number of ScaledObjects that have asked lately.
func (o *objects) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.claims)
}
