package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// snapshot says which transactions of a timeline were over: all below most except those that were
// running. It is the pg_snapshot of the server, whose text form it has.
type snapshot struct {
	most    uint64
	running []uint64 // ascending, all below most
}

func parseSnapshot(text string) (s snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("%q is not a snapshot", text)
	}
	if s.most, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return s, err
	}
	if parts[2] == "" {
		return s, nil
	}
	for _, field := range strings.Split(parts[2], ",") {
		id, err := strconv.ParseUint(field, 10, 64)
		if err != nil || id >= s.most {
			return s, fmt.Errorf("%q is not a snapshot", text)
		}
		s.running = append(s.running, id)
	}
	if !slices.IsSorted(s.running) {
		return s, fmt.Errorf("%q is not a snapshot", text)
	}
	return s, nil
}

// String returns the text form of the server: the oldest running transaction, the limit, and those
// that were running.
func (s snapshot) String() string {
	least := s.most
	list := make([]string, len(s.running))
	for i, id := range s.running {
		least = min(least, id)
		list[i] = strconv.FormatUint(id, 10)
	}
	return fmt.Sprintf("%d:%d:%s", least, s.most, strings.Join(list, ","))
}

// through returns the snapshot of a reader that had s, and has read all changes of transactions up
// to the given one that a newer snapshot sees.
func (s snapshot) through(last uint64, newer snapshot) snapshot {
	read := snapshot{most: max(s.most, last+1)}
	for _, id := range s.running {
		if id > last { // not read yet
			read.running = append(read.running, id)
		}
	}
	for _, id := range newer.running {
		if id < read.most {
			read.running = append(read.running, id)
		}
	}
	slices.Sort(read.running)
	read.running = slices.Compact(read.running)
	return read
}
