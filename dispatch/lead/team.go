package lead

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// team are the processes with the same runners, which share the groups evenly.
type team struct {
	name    string    // empty: none was joined yet
	members int       // as counted last; 0: not yet
	counted time.Time // when
	// since when this process has led more than its share; zero: it does not
	surplus time.Time
}

// most returns the most groups that this process is to lead.
func (t *team) most(groups int) int {
	members := max(1, t.members)
	return (groups + members - 1) / members
}

// count counts the processes that share the groups.
func (t *team) count(
	ctx context.Context, owners Owners, o store.Owner, groups []group, now time.Time,
) error {
	name := teamOf(groups)
	members, err := owners.Join(ctx, o, name)
	if err == nil {
		t.name, t.members, t.counted = name, members, now
	}
	return err
}

// join joins the team, so that its members count this process too.
func (t *team) join(
	ctx context.Context, owners Owners, o store.Owner, groups []group, now time.Time,
) error {
	if len(groups) == 0 || teamOf(groups) == t.name {
		return nil
	}
	return t.count(ctx, owners, o, groups, now)
}

// teamOf names the team of the processes with the same runners.
func teamOf(groups []group) string {
	sum := sha256.Sum256([]byte(strings.Join(runnersOf(groups), "\n")))
	return hex.EncodeToString(sum[:16])
}

// preferred sorts groups in an order that differs from node to node, so that processes which start
// together do not all try the same groups first.
func preferred(node string, groups []group) []group {
	weight := func(g group) uint64 {
		h := fnv.New64a()
		h.Write([]byte(node + "\n" + g[0]))
		return h.Sum64()
	}
	return slices.SortedFunc(slices.Values(groups), func(a, b group) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), strings.Compare(a[0], b[0]))
	})
}

// take chooses, of the groups that nobody else leads, those that this process is to lead: the ones
// that it leads in part, as many others as its share has room for, and those that nobody wants.
func (l *Lease) take(
	ctx context.Context, now time.Time, groups, free []group,
) (taken []group, err error) {
	var fresh []group
	led := 0
	for _, g := range groups {
		if l.Leading.leadsPart(g) {
			led++
		}
	}
	for _, g := range free {
		if l.Leading.leadsPart(g) {
			taken = append(taken, g)
		} else {
			fresh = append(fresh, g)
		}
	}
	if len(fresh) == 0 {
		return taken, nil
	}
	if err := l.team.count(ctx, l.Store, l.Owner, groups, now); err != nil {
		return nil, err
	}
	room := l.team.most(len(groups)) - led
	for _, g := range preferred(l.Owner.Node, fresh) {
		if room > 0 || l.Leading.freeFor(now, g) >= 2*l.Registration.TTL {
			taken = append(taken, g)
			room--
		}
	}
	return taken, nil
}

// yieldSurplus lets no more lines of the groups start that are beyond this process's share, once
// that has been so for a lease, so that others can lead them when those in flight have ended.
func (l *Lease) yieldSurplus(ctx context.Context, now time.Time, groups []group) error {
	var led []group
	for _, g := range groups {
		if l.Leading.leadsPart(g) {
			led = append(led, g)
		}
	}
	if len(led) > 1 && now.Sub(l.team.counted) >= l.Registration.TTL/4 {
		if err := l.team.count(ctx, l.Store, l.Owner, groups, now); err != nil {
			return err
		}
	}
	most := l.team.most(len(groups))
	switch {
	case len(led) <= most:
		l.team.surplus = time.Time{}
		l.Leading.yield(nil)
		return nil
	case l.team.surplus.IsZero():
		l.team.surplus = now
		return nil
	case now.Sub(l.team.surplus) < l.Registration.TTL:
		return nil
	}
	earlier := slices.Concat(l.Leading.yields()...)
	surplus := slices.DeleteFunc(slices.Clone(led), func(g group) bool {
		return !slices.ContainsFunc(g, func(name string) bool {
			return slices.Contains(earlier, name)
		})
	})
	if same := len(surplus) == len(led)-most; !same {
		surplus = l.leastBusy(led)[:len(led)-most]
		l.Log.InfoContext(ctx, "leaving some of what the upstreams serve to dispatchers with the "+
			"same upstreams", "dispatchers", l.team.members, "led", most,
			"left", len(surplus))
	}
	l.Leading.yield(surplus) // their names may be others now
	return nil
}

// leastBusy sorts led groups: those first of which no chunk is held.
func (l *Lease) leastBusy(led []group) []group {
	held := l.held()
	order := preferred(l.Owner.Node, led)
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b group) int {
		return cmp.Compare(heldOf(a, held), heldOf(b, held))
	})
	return order
}

func heldOf(g group, held map[string]string) (n int) {
	for _, name := range g {
		if _, is := held[name]; is {
			n++
		}
	}
	return n
}
