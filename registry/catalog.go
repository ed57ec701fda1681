package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/strictyaml"
)

// Key identifies an item of a kind.
type Key struct{ Name, Version string }

// String returns the name, with the version if the kind has any.
func (k Key) String() string {
	if k.Version == "" {
		return k.Name
	}
	return k.Name + "@" + k.Version
}

func (k Key) compare(other Key) int {
	return cmp.Or(strings.Compare(k.Name, other.Name), strings.Compare(k.Version, other.Version))
}

// Item is what a catalog holds.
type Item[T any] interface {
	Key() Key
	WithDefaults() T
	Validate() faults.List
	// warnings names what is set and has no effect yet.
	warnings() []string
}

// Entry is an item that is in force.
type Entry[T any] struct {
	Item     T
	Document string // that it was read from
	Row      int
	Warnings []string
	// Kept says that the document has another version of the item now, which is faulty.
	Kept bool
}

// Refused is an item or a document that is not in force as it stands.
type Refused struct {
	Kind     Kind // empty: a document as a whole
	Key      Key  // as far as it could be read
	Document string
	Row      int // 0: unknown
	Path     string
	Text     string
	// Kept says that the last good version stays in force.
	Kept bool
	// Since is the time from which it is refused for this reason.
	Since time.Time
}

// Reason returns what stays the same while an item is refused for the same reason: all but the time
// and the row, which edits above it move.
func (r Refused) Reason() Refused {
	r.Since, r.Row = time.Time{}, 0
	return r
}

// shown returns what is refused without what looks like a secret: texts quote values, and logs,
// /readyz, the console and commands show them.
func (r Refused) shown() Refused {
	r.Path, r.Text = cut(hideWithin(r.Path)), cut(hideInFault(r.Path, r.Text))
	r.Key.Name, r.Key.Version = cut(r.Key.Name), cut(r.Key.Version)
	return r
}

// cut returns a text without its end if it is long.
func cut(text string) string {
	const length = 1000 // of the longest message, with 40 names, and a value
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}

// String returns where it is, and what is wrong.
func (r Refused) String() string {
	where := r.Document
	if r.Row > 0 {
		where += fmt.Sprintf(":%d", r.Row)
	}
	if r.Kind != "" && r.Key.Name != "" {
		where += fmt.Sprintf(": %s %s", r.Kind, r.Key)
	}
	if r.Path != "" {
		where += ": " + r.Path
	}
	return where + ": " + r.Text
}

// catalog holds the items of a kind, sorted by key. It is immutable.
type catalog[T Item[T]] struct {
	kind    Kind
	entries []Entry[T]
	refused []Refused
	faults  []Refused // refused, but with each fault of an item
}

// from reports whether an item in force is from a document.
func (c *catalog[T]) from(document string) bool {
	return slices.ContainsFunc(c.entries, func(e Entry[T]) bool { return e.Document == document })
}

// find returns an item by its key.
func (c *catalog[T]) find(k Key) (e Entry[T], found bool) {
	i, found := slices.BinarySearchFunc(c.entries, k, func(e Entry[T], k Key) int {
		return e.Item.Key().compare(k)
	})
	if !found {
		return e, false
	}
	return c.entries[i], true
}

// named returns the items of a name, by version.
func (c *catalog[T]) named(name string) []Entry[T] {
	from, _ := slices.BinarySearchFunc(c.entries, Key{Name: name}, func(e Entry[T], k Key) int {
		return e.Item.Key().compare(k)
	})
	to := from
	for to < len(c.entries) && c.entries[to].Item.Key().Name == name {
		to++
	}
	return c.entries[from:to]
}

// next returns the catalog of what documents have now. An item that is faulty stays in force as it
// was last in the same document, and so do all of a document that can't be read. Of several items
// with one key the first counts.
func (c *catalog[T]) next(now time.Time, read []readPart) *catalog[T] {
	next := &catalog[T]{kind: c.kind}
	taken := map[Key]string{}
	put := func(e Entry[T]) {
		k := e.Item.Key()
		if first, is := taken[k]; is {
			text := fmt.Sprintf("is in %s already, which counts; remove one", first)
			if first == e.Document {
				text = "stands here twice, and the first one counts; remove one"
			}
			next.refuse(Refused{Document: e.Document, Row: e.Row, Key: k, Text: text})
			return
		}
		taken[k] = e.Document
		next.entries = append(next.entries, e)
	}
	for _, d := range read {
		if d.part.fault != nil {
			f := d.part.fault
			kept := false
			for _, e := range c.entries {
				if e.Document == d.document {
					e.Kept, kept = true, true
					put(e)
				}
			}
			if !d.part.reported {
				next.refuse(Refused{Document: d.document, Row: f.Row, Path: f.Path, Text: f.Text,
					Kept: kept})
			}
			continue
		}
		for _, n := range d.part.items {
			e, key, wrong := decodeItem[T](n, d)
			if len(wrong) == 0 {
				put(e)
				continue
			}
			last, found := c.find(key)
			kept := found && last.Document == d.document
			if kept {
				last.Kept, last.Row = true, e.Row
				put(last)
			}
			next.refuseItem(key, kept, wrong)
		}
	}
	slices.SortFunc(next.entries, func(a, b Entry[T]) int {
		return a.Item.Key().compare(b.Item.Key())
	})
	before := map[Refused]time.Time{}
	for _, r := range c.refused {
		before[r.Reason()] = r.Since
	}
	for i, r := range next.refused {
		since, known := before[r.Reason()]
		if !known {
			since = now
		}
		next.refused[i].Since = since
	}
	return next
}

func (c *catalog[T]) refuse(r Refused) {
	r.Kind = c.kind
	r = r.shown()
	c.refused = append(c.refused, r)
	c.faults = append(c.faults, r)
}

// refuseItem refuses an item by its first fault, and notes all of them.
func (c *catalog[T]) refuseItem(key Key, kept bool, wrong []Refused) {
	for i := range wrong {
		wrong[i].Kind, wrong[i].Key, wrong[i].Kept = c.kind, key, kept
		wrong[i] = wrong[i].shown()
	}
	c.faults = append(c.faults, wrong...)
	first := wrong[0]
	if more := len(wrong) - 1; more > 0 {
		first.Text += fmt.Sprintf(" (and %s)", humanize.Count(more, "more fault"))
	}
	c.refused = append(c.refused, first)
}

// readPart is a part of a document.
type readPart struct {
	document string
	part     *part
}

// maxFaults limits the faults that are reported of an item.
const maxFaults = 100

// decodeItem decodes and judges an item. The key is the one that a faulty item seems to have, and
// wrong has its faults.
func decodeItem[T Item[T]](n *yaml.Node, d readPart) (e Entry[T], key Key, wrong []Refused) {
	var item T
	values := strictyaml.Decode(n, "", &item)
	row := func(r int) int {
		if r <= 0 {
			r = n.Line
		}
		return r + d.part.first
	}
	item = item.WithDefaults()
	e = Entry[T]{Item: item, Document: d.document, Row: row(n.Line)}
	key = item.Key()
	all := values.Faults()
	if len(all) == 0 {
		for _, err := range item.Validate() {
			path, text, _ := strings.Cut(err.Error(), ": ")
			all = append(all, &strictyaml.Fault{Row: values.Row(path), Path: path, Text: text})
		}
	}
	for _, f := range all[:min(len(all), maxFaults)] {
		wrong = append(wrong, Refused{Document: d.document, Row: row(f.Row), Path: f.Path,
			Text: f.Text})
	}
	if len(wrong) == 0 {
		e.Warnings = item.warnings()
	}
	return e, key, wrong
}
