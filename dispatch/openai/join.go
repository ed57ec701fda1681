package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// rule determines how the values of a member in the chunks become its value in the answer.
type rule uint8

const (
	// agree: all chunks that have the member must have the same value, byte for byte. That is the
	// rule of all members that no table names: a server's additions are kept if they come once or
	// do not change. If they change, nobody knows whether the values add up or replace each other.
	agree   rule = iota
	first        // the first value counts
	last         // the last one
	text         // strings, joined
	list         // arrays, joined
	inner        // an object, member by member
	indexed      // an array of objects, each a piece of the one with the same "index"
	dropped      // of streams only
)

// field describes a member of a chunk. null counts only if no other value comes; so does an empty
// string under agree and last.
type field struct {
	name     string
	how      rule
	of       []field // of inner and indexed
	as       string  // its name in the answer, if that differs
	fallback string  // its value in the answer if no chunk has the member; empty: none
}

func (f *field) answerName() string { return cmp.Or(f.as, f.name) }

// value is the value of a member in the chunks so far.
type value struct {
	field   *field
	name    string  // of a member that no table names
	raw     []byte  // of leaves; of texts and lists without quotes and brackets
	known   bool    // raw holds more than null or an empty string
	opened  bool    // a chunk had a text, list or object, perhaps an empty one
	members []value // of an object: those of the table in its order, then the others
	items   []value // of an indexed array, by index
	index   int     // in such an array
}

// Limits far above what servers send, since a lookup takes longer with each member.
const (
	maxUnnamed = 256  // members of one object that no table names
	maxItems   = 4096 // choices, or tool calls of one
)

// joiner merges chunks into one object.
type joiner struct {
	root   value
	size   int64 // bytes kept
	memory *streamMemory
	item   int  // index of the outermost array's element that is being joined
	grew   bool // the last chunk brought text for element 0
}

func newJoiner(fields []field, memory *streamMemory) *joiner {
	j := &joiner{memory: memory}
	j.root = object(&field{how: inner, of: fields})
	j.root.opened = true
	return j
}

// object returns an object without values.
func object(of *field) value {
	v := value{field: of, members: make([]value, len(of.of))}
	for i := range of.of {
		v.members[i].field = &of.of[i]
	}
	return v
}

// addMembers joins the members of the object at the cursor.
func (j *joiner) addMembers(to *value, c *batchfile.Cursor, depth int) error {
	to.opened = true
	for o := c.Object(); o.Next(); {
		v, err := j.member(to, o.Key())
		if err == nil {
			err = j.addValue(v, c, depth)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.Key(), err)
		}
	}
	return c.Err()
}

// member finds or makes a member of an object.
func (j *joiner) member(of *value, key []byte) (*value, error) {
	if v := of.member(key); v != nil {
		return v, nil
	}
	if len(of.members) >= len(of.field.of)+maxUnnamed {
		return nil, fmt.Errorf("%w: more than %d members that no table names", ErrNotAssembled,
			maxUnnamed)
	}
	of.members = append(of.members, value{field: &unnamed, name: string(key)})
	return &of.members[len(of.members)-1], j.weigh(1, len(key))
}

var unnamed = field{how: agree}

func (v *value) member(key []byte) *value {
	for i := range v.members {
		if m := &v.members[i]; m.field.name == string(key) && m.name == "" ||
			m.name == string(key) && m.name != "" {
			return m
		}
	}
	return nil
}

// addValue joins the value at the cursor, and moves the cursor past it unless it fails.
func (j *joiner) addValue(v *value, c *batchfile.Cursor, depth int) error {
	how, kind := v.field.how, c.Kind()
	switch {
	case how == dropped:
		c.Skip()
		return c.Err()
	case kind == 'n' || how == agree || how == first || how == last:
		return j.addLeaf(v, c.Skip())
	case how == text && kind != '"':
		return fmt.Errorf("%w: %.40s is no string", ErrNotAssembled, c.Skip())
	case how == text:
		return j.addText(v, c.Skip())
	case how == inner && kind != '{':
		return fmt.Errorf("%w: %.40s is no object", ErrNotAssembled, c.Skip())
	case how == inner:
		if v.members == nil {
			of := v.field
			if err := j.weigh(len(of.of), 0); err != nil {
				return err
			}
			*v = object(of)
		}
		return j.addMembers(v, c, depth)
	case kind != '[':
		return fmt.Errorf("%w: %.40s is no array", ErrNotAssembled, c.Skip())
	}
	v.open()
	for a := c.Array(); a.Next(); {
		var err error
		if how == list {
			err = j.addElement(v, c.Skip())
		} else {
			err = j.addItem(v, c, depth)
		}
		if err != nil {
			return err
		}
	}
	return c.Err()
}

func (j *joiner) addText(v *value, piece []byte) error {
	if piece == nil {
		return errNoEvent
	}
	if len(piece) > 2 && j.item == 0 {
		j.grew = true
	}
	v.open()
	return j.keep(v, piece[1:len(piece)-1])
}

func (j *joiner) addElement(v *value, piece []byte) error {
	if len(v.raw) > 0 {
		v.raw = append(v.raw, ',')
	}
	return j.keep(v, piece)
}

// open makes a value empty that was absent or null.
func (v *value) open() {
	if !v.opened {
		v.opened, v.raw = true, nil
	}
}

// addLeaf joins a value that is taken or compared as a piece; null joins to any. A nil piece is a
// fault, which the cursor holds.
func (j *joiner) addLeaf(v *value, piece []byte) error {
	filled := string(piece) != `""`
	switch {
	case piece == nil:
		return errNoEvent
	case string(piece) == "null":
		if v.raw == nil && !v.opened {
			v.raw = []byte("null")
		}
	case !v.known || filled && v.field.how == last:
		j.drop(len(v.raw))
		v.raw, v.known = v.raw[:0:0], filled
		return j.keep(v, piece)
	case filled && v.field.how == agree && !bytes.Equal(v.raw, piece):
		return fmt.Errorf("%w: it is %.40s in one chunk and %.40s in another", ErrNotAssembled,
			v.raw, piece)
	}
	return nil
}

// addItem joins an object of an indexed array.
func (j *joiner) addItem(v *value, c *batchfile.Cursor, depth int) error {
	index, err := indexOf(*c)
	if err != nil {
		return err
	}
	if depth == 0 {
		j.item = index
		defer func() { j.item = 0 }()
	}
	i, found := slices.BinarySearchFunc(v.items, index, func(item value, index int) int {
		return cmp.Compare(item.index, index)
	})
	if !found {
		if len(v.items) == maxItems {
			return fmt.Errorf("%w: more than %d elements", ErrNotAssembled, maxItems)
		}
		item := object(v.field)
		item.index = index
		v.items = slices.Insert(v.items, i, item)
		if err := j.weigh(1+len(v.field.of), 0); err != nil {
			return err
		}
		if depth > 0 && j.item == 0 {
			j.grew = true // a tool is called
		}
	}
	from := c.At()
	if err := j.addMembers(&v.items[i], c, depth+1); err != nil || found {
		return err
	}
	return j.weigh(0, c.At()-from) // the bytes of a new element count even if it is empty
}

// indexOf reads the member "index" of the object at the cursor. Servers send it first, or nearly
// so, so little is read twice.
func indexOf(c batchfile.Cursor) (int, error) {
	for o := c.Object(); o.Next(); {
		if string(o.Key()) == "index" {
			if index, err := strconv.Atoi(string(c.Skip())); err == nil && index >= 0 {
				return index, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("%w: an element has no index", ErrNotAssembled)
}

func (j *joiner) keep(v *value, piece []byte) error {
	if err := j.weigh(0, len(piece)); err != nil {
		return err
	}
	v.raw = append(v.raw, piece...)
	return nil
}

// weigh takes memory for values and bytes that are kept. Buffers have up to twice the bytes, and
// there is one more copy at the end.
func (j *joiner) weigh(values, bytes int) error {
	j.size += int64(bytes)
	if j.size > j.memory.limit {
		return tooLarge(j.memory.limit)
	}
	return j.memory.add(int64(values)*int64(unsafe.Sizeof(value{})) + 3*int64(bytes))
}

// drop gives back the memory of bytes that are not kept any more.
func (j *joiner) drop(bytes int) {
	j.size -= int64(bytes)
	j.memory.used -= 3 * int64(bytes)
}

// append appends the value to dst; nothing if it is absent and has no fallback.
func (v *value) append(dst []byte) []byte {
	switch how := v.field.how; {
	case v.absent():
		return append(dst, v.field.fallback...)
	case !v.opened: // a leaf, or null
		return append(dst, v.raw...)
	case how == text:
		return append(append(append(dst, '"'), v.raw...), '"')
	case how == list:
		return append(append(append(dst, '['), v.raw...), ']')
	case how == indexed && v.members == nil:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.items[i].append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	some := false
	for i := range v.members {
		m := &v.members[i]
		if m.field.how == dropped || m.absent() && m.field.fallback == "" {
			continue
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(appendString(dst, cmp.Or(m.name, m.field.answerName())), ':')
		dst = m.append(dst)
	}
	return append(dst, '}')
}

func (v *value) absent() bool { return v.raw == nil && !v.opened }

func appendString(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can be quoted
	}
	return append(dst, quoted...)
}
