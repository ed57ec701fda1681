package protocol

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

// This is the protocol as a model whose states are searched exhaustively: every order of the steps
// of two owners of a chunk, the sweep, the deletion of queued objects, compaction and the removal
// of the batch. A process may stall between any two of its steps, for as long as all others take;
// one that stalls for ever has crashed. Answers of the registry may be lost, and what a failed PUT
// has sent may arrive later.
//
// What must hold in every state:
//
//   - Each range of the journal is in an object that exists.
//   - Records that were reported as committed are in the journal, until the batch is removed.
//   - Since the second owner has replayed the journal, it gets no other records of the first one.
//   - A removed batch has no ranges.
//
// TestProtocolNeedsEachRule leaves out one rule at a time, to show that the search finds what the
// rule is for.

// rules are those of the protocol that can be left out.
type rules struct {
	refuseSwept   bool // registrations at or below swept_through are refused
	advanceFirst  bool // the boundary advances before the sweep asks what is registered
	checkEpochs   bool // registrations of lower epochs are left out
	deleteSwept   bool // only keys at or below the boundary are taken off the queue
	replaceIfSame bool // a replacement counts only if what it replaces is still there
}

var allRules = rules{true, true, true, true, true}

const (
	maxKeys = 4
	maxTime = 1
)

// keySet is a set of keys by their numbers, and recordSet one of records.
type (
	keySet    uint8
	recordSet uint8
)

func (s keySet) has(k uint8) bool { return s&(1<<k) != 0 }

// world is a state. It is comparable, so that the search can remember it.
type world struct {
	now     uint8
	keys    uint8              // number of keys so far
	stamp   [maxKeys]uint8     // of each key
	content [maxKeys]recordSet // of each object
	objects keySet             // that exist
	late    uint8              // number of the key, plus 1, whose PUT arrives later; 0: none
	journal [maxKeys]uint8     // numbers of keys, plus 1, in the order of ranges
	queue   keySet             // queued for deletion
	through int8               // the boundary; -1: none yet
	epoch   uint8              // of the chunk; 0: unknown
	removed bool
	first   writer
	second  writer
	opened  bool      // the second owner has fenced the first one
	seen    recordSet // what it has replayed
	sweep   sweep
	deleter deleter
	compact compact
}

// writer commits its records one by one.
type writer struct {
	at      stage
	left    recordSet // not committed
	key     uint8
	acked   recordSet
	retried bool // an answer of the registry was lost
}

type stage uint8

const (
	idle stage = iota
	named
	written
	fenced
)

type sweep struct {
	at       uint8 // 0 idle, 1 advanced, 2 listed, 3 deletes
	boundary int8
	keys     keySet
	rounds   uint8
}

type deleter struct {
	at     uint8 // 0 idle, 1 deletes, 2 finishes
	keys   keySet
	rounds uint8
}

type compact struct {
	at      uint8 // 0 idle, 1 picked, 2 written
	old     keySet
	key     uint8
	content recordSet
	rounds  uint8
}

func (w *world) registered() (keys keySet) {
	for _, k := range w.journal {
		if k > 0 {
			keys |= 1 << (k - 1)
		}
	}
	return keys
}

func (w *world) records() (all recordSet) {
	for k := range uint8(maxKeys) {
		if w.registered().has(k) {
			all |= w.content[k]
		}
	}
	return all
}

// appendRange appends a range to the journal.
func (w *world) appendRange(key uint8) {
	for i := range w.journal {
		if w.journal[i] == 0 {
			w.journal[i] = key + 1
			return
		}
	}
}

// name makes a key with the server's time; false: the model has no more keys.
func (w *world) name(content recordSet) (key uint8, ok bool) {
	if w.keys == maxKeys {
		return 0, false
	}
	key = w.keys
	w.keys++
	w.stamp[key], w.content[key] = w.now, content
	return key, true
}

// swept reports whether the registry refuses the key.
func (w *world) swept(r rules, key uint8) bool {
	return r.refuseSwept && int8(w.stamp[key]) <= w.through
}

// step is one step of one process.
type step struct {
	what string
	next world
}

// steps returns all steps that are possible in a state.
func (w world) steps(r rules) (all []step) {
	add := func(what string, next world) { all = append(all, step{what, next}) }
	if w.now < maxTime {
		n := w
		n.now++
		add("time passes", n)
	}
	if w.late > 0 {
		n := w
		n.objects |= 1 << (w.late - 1)
		n.late = 0
		add(fmt.Sprintf("a late PUT of %d arrives", w.late-1), n)
	}
	w.writerSteps(r, "first owner", 1, func(n *world) *writer { return &n.first }, add)
	if w.opened {
		w.writerSteps(r, "second owner", 2, func(n *world) *writer { return &n.second }, add)
	} else if !w.removed {
		n := w
		n.opened, n.epoch, n.seen = true, 2, w.records()
		add("the second owner fences and replays", n)
	}
	w.sweepSteps(r, add)
	w.deleterSteps(r, add)
	w.compactSteps(r, add)
	if !w.removed && w.opened {
		n := w
		n.removed, n.epoch = true, 0
		n.queue |= w.registered()
		n.journal = [maxKeys]uint8{}
		add("the batch is removed", n)
	}
	return all
}

func (w world) writerSteps(
	r rules, who string, epoch uint8, of func(*world) *writer, add func(string, world),
) {
	me := *of(&w)
	switch me.at {
	case idle:
		if me.left == 0 {
			return
		}
		n := w
		record := recordSet(1) << bits.TrailingZeros8(uint8(me.left))
		key, ok := n.name(record)
		if !ok {
			return
		}
		of(&n).at, of(&n).key = named, key
		add(fmt.Sprintf("%s names %d at time %d", who, key, w.now), n)
	case named:
		n := w
		n.objects |= 1 << me.key
		of(&n).at = written
		add(fmt.Sprintf("%s puts %d", who, me.key), n)
		if w.late == 0 && epoch == 1 {
			n := w
			n.late = me.key + 1
			add(fmt.Sprintf("%s gets no answer to the PUT of %d", who, me.key), n)
		}
	case written:
		w.register(r, who, epoch, of, add)
	}
}

func (w world) register(
	r rules, who string, epoch uint8, of func(*world) *writer, add func(string, world),
) {
	me := *of(&w)
	n := w
	switch {
	case w.swept(r, me.key) || w.registered().has(me.key) || w.queue.has(me.key):
		of(&n).at = idle // it writes the record again under another key
		add(fmt.Sprintf("%s may not register %d", who, me.key), n)
	case w.epoch == 0 || r.checkEpochs && w.epoch != epoch:
		of(&n).at = fenced
		add(fmt.Sprintf("%s is fenced with %d", who, me.key), n)
	default:
		n.appendRange(me.key)
		if !me.retried && epoch == 2 { // a first owner that repeats it is fenced
			lost := n
			of(&lost).retried = true
			add(fmt.Sprintf("%s registers %d and gets no answer", who, me.key), lost)
		}
		of(&n).at = idle
		of(&n).left &^= w.content[me.key]
		of(&n).acked |= w.content[me.key]
		add(fmt.Sprintf("%s registers %d", who, me.key), n)
	}
}

// older returns the existing objects whose keys are at or below a boundary.
func (w *world) older(boundary int8) (keys keySet) {
	for k := range w.keys {
		if w.objects.has(k) && int8(w.stamp[k]) <= boundary {
			keys |= 1 << k
		}
	}
	return keys
}

func (w world) sweepSteps(r rules, add func(string, world)) {
	n := w
	s := &n.sweep
	switch s.at {
	case 0:
		if s.rounds == 1 {
			return
		}
		s.rounds++
		s.boundary = int8(w.now)
		if r.advanceFirst {
			n.through = max(w.through, s.boundary)
		}
		s.at = 1
		add(fmt.Sprintf("the sweep begins with boundary %d", s.boundary), n)
	case 1:
		s.keys = w.older(s.boundary)
		s.at = 2
		add(fmt.Sprintf("the sweep lists %04b", s.keys), n)
	case 2:
		s.keys &^= w.registered() | w.queue
		s.at = 3
		if s.keys == 0 {
			s.at = 0
		}
		add(fmt.Sprintf("the sweep finds %04b not registered", s.keys), n)
	case 3:
		if !r.advanceFirst {
			n.through = max(w.through, s.boundary)
		}
		k := uint8(bits.TrailingZeros8(uint8(s.keys)))
		n.objects &^= 1 << k
		if s.keys &^= 1 << k; s.keys == 0 {
			*s = sweep{rounds: s.rounds}
		}
		add(fmt.Sprintf("the sweep deletes %d", k), n)
	}
}

func (w world) deleterSteps(r rules, add func(string, world)) {
	n := w
	d := &n.deleter
	switch d.at {
	case 0:
		for k := range w.keys {
			if w.queue.has(k) && (!r.deleteSwept || int8(w.stamp[k]) <= w.through) {
				d.keys |= 1 << k
			}
		}
		if d.keys == 0 || d.rounds == 1 {
			return
		}
		d.rounds++
		d.at = 1
		add(fmt.Sprintf("the deletion takes %04b", d.keys), n)
	case 1:
		n.objects &^= d.keys
		d.at = 2
		add(fmt.Sprintf("the deletion deletes %04b", d.keys), n)
	case 2:
		n.queue &^= d.keys
		*d = deleter{rounds: d.rounds}
		add("the deletion finishes", n)
	}
}

func (w world) compactSteps(r rules, add func(string, world)) {
	n := w
	c := &n.compact
	switch c.at {
	case 0:
		if w.journal[1] == 0 || c.rounds == 1 {
			return
		}
		c.rounds++
		c.old = w.registered()
		c.at = 1
		add(fmt.Sprintf("the compaction picks %04b", c.old), n)
	case 1:
		for k := range w.keys {
			if c.old.has(k) {
				c.content |= w.content[k]
			}
		}
		key, ok := n.name(c.content)
		if !ok || c.old&^w.objects != 0 { // an object is gone: nothing to compact
			n = w
			n.compact = compact{rounds: w.compact.rounds}
			add("the compaction gives up", n)
			return
		}
		c.key = key
		n.objects |= 1 << key
		c.at = 2
		add(fmt.Sprintf("the compaction writes %d", key), n)
	case 2:
		same := w.registered()&c.old == c.old // ranges of one chunk: those between are also in old
		if !w.swept(r, c.key) && (same || !r.replaceIfSame) {
			n.replace(c.old, c.key)
		}
		n.compact = compact{rounds: w.compact.rounds}
		add(fmt.Sprintf("the compaction replaces %04b by %d: %t", w.compact.old,
			w.compact.key, same), n)
	}
}

// replace puts a key into the place of others, and queues those.
func (w *world) replace(old keySet, key uint8) {
	before := w.journal
	w.journal = [maxKeys]uint8{}
	w.appendRange(key)
	for _, k := range before {
		switch {
		case k > 0 && old.has(k-1):
			w.queue |= 1 << (k - 1)
		case k > 0:
			w.appendRange(k - 1)
		}
	}
}

// fault returns what is wrong in a state; empty: nothing.
func (w *world) fault() string {
	records := w.records()
	switch {
	case w.registered()&^w.objects != 0:
		return fmt.Sprintf("objects %04b of the journal do not exist", w.registered()&^w.objects)
	case !w.removed && (w.first.acked|w.second.acked)&^records != 0:
		return fmt.Sprintf("committed records %02b are lost",
			(w.first.acked|w.second.acked)&^records)
	case w.opened && records&firstRecords&^w.seen != 0:
		return fmt.Sprintf("records %02b of the first owner came after the fence",
			records&firstRecords&^w.seen)
	case w.removed && records != 0:
		return "a removed batch has ranges"
	}
	return ""
}

const firstRecords recordSet = 0b01

// search visits all states. It returns their number, and the steps to a state with a fault.
func search(r rules) (states int, trace []string) {
	start := world{through: -1, epoch: 1, first: writer{left: firstRecords},
		second: writer{left: 0b10}}
	type origin struct {
		from int32
		what string
	}
	list := []world{start}
	origins := []origin{{-1, "start"}}
	known := map[world]struct{}{start: {}}
	for i := 0; i < len(list); i++ {
		if fault := list[i].fault(); fault != "" {
			trace = []string{fault}
			for at := int32(i); at >= 0; at = origins[at].from {
				trace = append([]string{origins[at].what}, trace...)
			}
			return len(list), trace
		}
		for _, s := range list[i].steps(r) {
			if _, ok := known[s.next]; !ok {
				known[s.next] = struct{}{}
				list = append(list, s.next)
				origins = append(origins, origin{int32(i), s.what})
			}
		}
	}
	return len(list), nil
}

func TestProtocol(t *testing.T) {
	states, trace := search(allRules)
	if trace != nil {
		t.Fatalf("after %d states:\n%s", states, strings.Join(trace, "\n"))
	}
	t.Logf("%d states, no fault", states)
	if states < 50_000 {
		t.Errorf("visited %d states only", states)
	}
}

// TestProtocolNeedsEachRule leaves out one rule at a time. Without the first one, the search finds
// the race of SlateDB's garbage collector: a writer stalls between its PUT and its registration,
// the sweep deletes the object, and the writer registers it.
func TestProtocolNeedsEachRule(t *testing.T) {
	for name, change := range map[string]func(*rules){
		"registrations at or below swept_through are refused": func(r *rules) {
			r.refuseSwept = false
		},
		"the boundary advances before the sweep asks what is registered": func(r *rules) {
			r.advanceFirst = false
		},
		"lower epochs are left out":            func(r *rules) { r.checkEpochs = false },
		"deletions wait for the boundary":      func(r *rules) { r.deleteSwept = false },
		"replacements check what they replace": func(r *rules) { r.replaceIfSame = false },
	} {
		t.Run(name, func(t *testing.T) {
			r := allRules
			change(&r)
			states, trace := search(r)
			if trace == nil {
				t.Fatalf("found no fault in %d states", states)
			}
			t.Logf("after %d states:\n%s", states, strings.Join(trace, "\n"))
		})
	}
}
