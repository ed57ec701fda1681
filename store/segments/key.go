package segments

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// Stamp is a time of the registry's server, in microseconds since 1970. The order of keys follows
// it.
type Stamp int64

// StampOf returns the stamp of a time.
func StampOf(t time.Time) Stamp { return Stamp(t.UnixMicro()) }

// Time returns the time of the stamp, in UTC.
func (s Stamp) Time() time.Time { return time.UnixMicro(int64(s)).UTC() }

// Add returns the stamp that is d later.
func (s Stamp) Add(d time.Duration) Stamp { return s + Stamp(d.Microseconds()) }

// Key is the name of a segment's object. No two objects ever have the same key, also those of
// attempts that failed, unless they have the same bytes.
//
// Stamp is near the server's time at which the object was written. The registry compares it with
// the boundary of the sweep, so a wrong one costs a second attempt and breaks nothing. It is never
// that of the local clock, which may be minutes away from the server's.
type Key struct {
	Stamp   Stamp
	Process int64 // of Registry.Enroll: no two processes have the same
	Count   int64 // counts the keys of the process
}

// Widths of the parts of a key in its text, in hexadecimal digits.
const (
	stampDigits   = 14 // until the year 4253
	processDigits = 10
	countDigits   = 10
	keyLength     = stampDigits + 1 + processDigits + 1 + countDigits
)

// String returns the key as the name of an object. Names sort as keys do.
func (k Key) String() string {
	return fmt.Sprintf("%0*x-%0*x-%0*x", stampDigits, int64(k.Stamp), processDigits, k.Process,
		countDigits, k.Count)
}

// ParseKey returns the key that String has written.
func ParseKey(name string) (Key, error) {
	bad := func() (Key, error) { return Key{}, fmt.Errorf("%q is not the key of a segment", name) }
	if len(name) != keyLength {
		return bad()
	}
	var parts [3]int64
	for i, rest := 0, name; i < len(parts); i++ {
		width := [...]int{stampDigits, processDigits, countDigits}[i]
		n, err := strconv.ParseUint(rest[:width], 16, 63)
		if err != nil {
			return bad()
		}
		parts[i] = int64(n)
		if rest = rest[width:]; rest != "" {
			if rest[0] != '-' {
				return bad()
			}
			rest = rest[1:]
		}
	}
	k := Key{Stamp: Stamp(parts[0]), Process: parts[1], Count: parts[2]}
	if k.String() != name { // upper case
		return bad()
	}
	return k, nil
}

// Compare orders keys by stamp, process and count.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Stamp, other.Stamp), cmp.Compare(k.Process, other.Process),
		cmp.Compare(k.Count, other.Count))
}
