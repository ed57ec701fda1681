package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// ErrUnjoined says that a stream was not understood well enough to be sure what the answer would
// have been without streaming.
var ErrUnjoined = errors.New("the stream can't be put together")

// manner is how the values that one member has, chunk by chunk, become its value in the whole
// answer.
type manner uint8

const (
	// agree: every chunk that has the member must say the same, byte for byte. That is the rule of
	// all members that no table names: what a server adds is kept where it comes once or stays the
	// same, and where it doesn't, nobody knows whether its values add up or replace each other.
	agree   manner = iota
	first          // the first value counts
	last           // the last one
	text           // strings, joined
	list           // arrays, joined
	inner          // an object, member by member
	indexed        // an array of objects, each a piece of the one with the same "index"
	dropped        // of streams only
)

// field is a member of a chunk. null, and an empty string under agree and last, says nothing unless
// nothing else comes.
type field struct {
	name      string
	how       manner
	of        []field // of inner and indexed
	as        string  // its name in the whole answer, if that is another
	otherwise string  // what stands there when no chunk has the member; empty: nothing
}

func (f *field) whole() string { return cmp.Or(f.as, f.name) }

// value is a member as far as it has come.
type value struct {
	field   *field
	name    string  // of a member that no table names
	raw     []byte  // of leaves; of texts and lists without what encloses them
	said    bool    // raw holds more than null or an empty string
	opened  bool    // a text, list or object has come, if only an empty one
	members []value // of an object: those of the table in its order, then others as they came
	items   []value // of an indexed array, by index
	index   int     // in such an array
}

// No server has reason to send more of these; beyond, finding them again would take ever longer.
const (
	mostUnnamed = 256  // members of one object that no table names
	mostItems   = 4096 // choices, or tool calls of one
)

// joiner puts chunks together.
type joiner struct {
	root value
	size int64 // bytes kept
	room *room
	item int  // index of the outermost array's element that is being joined
	grew bool // element 0 has got text by the last chunk
}

func newJoiner(fields []field, in *room) *joiner {
	j := &joiner{room: in}
	j.root = object(&field{how: inner, of: fields})
	return j
}

// object is an object to which nothing has come yet.
func object(of *field) value {
	v := value{field: of, members: make([]value, len(of.of))}
	for i := range of.of {
		v.members[i].field = &of.of[i]
	}
	return v
}

// add joins another chunk, a valid JSON object.
func (j *joiner) add(chunk []byte) error {
	j.grew = false
	return j.addMembers(&j.root, chunk, 0)
}

func (j *joiner) addMembers(to *value, chunk []byte, depth int) error {
	to.opened = true
	for name, piece := range batchfile.Members(chunk) {
		v := to.member(name)
		if v == nil {
			if len(to.members) >= len(to.field.of)+mostUnnamed {
				return fmt.Errorf("%w: more than %d members that no table names", ErrUnjoined,
					mostUnnamed)
			}
			to.members = append(to.members, value{field: &unnamed, name: name})
			v = &to.members[len(to.members)-1]
			if err := j.weigh(1, len(name)); err != nil {
				return err
			}
		}
		if err := j.addPiece(v, piece, depth); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

var unnamed = field{how: agree}

func (v *value) member(name string) *value {
	for i := range v.members {
		if m := &v.members[i]; m.field.name == name && m.name == "" || m.name == name &&
			name != "" {
			return m
		}
	}
	return nil
}

func (j *joiner) addPiece(v *value, piece []byte, depth int) error {
	how := v.field.how
	if how == dropped {
		return nil
	}
	if string(piece) == "null" {
		if v.raw == nil && !v.opened {
			v.raw = []byte("null")
		}
		return nil
	}
	switch how {
	case agree, first, last:
		return j.addLeaf(v, piece)
	case text:
		if piece[0] != '"' {
			return fmt.Errorf("%w: %.40s is no string", ErrUnjoined, piece)
		}
		if len(piece) > 2 && j.item == 0 {
			j.grew = true
		}
		v.open()
		return j.keep(v, piece[1:len(piece)-1])
	case list:
		if piece[0] != '[' {
			return fmt.Errorf("%w: %.40s is no array", ErrUnjoined, piece)
		}
		v.open()
		for element := range batchfile.Elements(piece) {
			if len(v.raw) > 0 {
				v.raw = append(v.raw, ',')
			}
			if err := j.keep(v, element); err != nil {
				return err
			}
		}
		return nil
	case inner:
		if piece[0] != '{' {
			return fmt.Errorf("%w: %.40s is no object", ErrUnjoined, piece)
		}
		if v.members == nil {
			of := v.field
			if err := j.weigh(len(of.of), 0); err != nil {
				return err
			}
			*v = object(of)
		}
		return j.addMembers(v, piece, depth)
	default: // indexed
		if piece[0] != '[' {
			return fmt.Errorf("%w: %.40s is no array", ErrUnjoined, piece)
		}
		v.open()
		for element := range batchfile.Elements(piece) {
			if err := j.addItem(v, element, depth); err != nil {
				return err
			}
		}
		return nil
	}
}

// open makes an empty value of what was at most null.
func (v *value) open() {
	if !v.opened {
		v.opened, v.raw = true, nil
	}
}

func (j *joiner) addLeaf(v *value, piece []byte) error {
	says := string(piece) != `""`
	switch {
	case !v.said || says && v.field.how == last:
		j.drop(len(v.raw))
		v.raw, v.said = v.raw[:0:0], says
		return j.keep(v, piece)
	case says && v.field.how == agree && !bytes.Equal(v.raw, piece):
		return fmt.Errorf("%w: it is %.40s in one chunk and %.40s in another", ErrUnjoined, v.raw,
			piece)
	}
	return nil
}

func (j *joiner) addItem(v *value, element []byte, depth int) error {
	index, err := indexOf(element)
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
		if len(v.items) == mostItems {
			return fmt.Errorf("%w: more than %d elements", ErrUnjoined, mostItems)
		}
		item := object(v.field)
		item.index = index
		v.items = slices.Insert(v.items, i, item)
		// so that empty ones don't come for nothing
		if err := j.weigh(1+len(v.field.of), len(element)); err != nil {
			return err
		}
		if depth > 0 && j.item == 0 {
			j.grew = true // a tool is called
		}
	}
	return j.addMembers(&v.items[i], element, depth+1)
}

func indexOf(element []byte) (int, error) {
	for name, piece := range batchfile.Members(element) {
		if name == "index" {
			if index, err := strconv.Atoi(string(piece)); err == nil && index >= 0 {
				return index, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("%w: an element has no index", ErrUnjoined)
}

func (j *joiner) keep(v *value, piece []byte) error {
	if err := j.weigh(0, len(piece)); err != nil {
		return err
	}
	v.raw = append(v.raw, piece...)
	return nil
}

// weigh takes room for values and bytes that are kept. Buffers have up to twice the bytes, and
// there is one more copy at the end.
func (j *joiner) weigh(values, bytes int) error {
	j.size += int64(bytes)
	if j.size > j.room.most {
		return tooLarge(j.room.most)
	}
	return j.room.add(int64(values)*int64(unsafe.Sizeof(value{})) + 3*int64(bytes))
}

// drop gives up what bytes took that are not kept any more.
func (j *joiner) drop(bytes int) {
	j.size -= int64(bytes)
	j.room.used -= 3 * int64(bytes)
}

// append writes the whole value; nothing if it never came and nothing stands for it.
func (v *value) append(dst []byte) []byte {
	switch how := v.field.how; {
	case v.absent():
		return append(dst, v.field.otherwise...)
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
		if m.field.how == dropped || m.absent() && m.field.otherwise == "" {
			continue
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(appendString(dst, cmp.Or(m.name, m.field.whole())), ':')
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
