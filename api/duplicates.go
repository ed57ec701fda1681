package api

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// duplicateIDs finds the custom_ids that occur in more than one of the inputs, whose lines could
// not be distinguished in joined results. Duplicates within a file were found at upload. It returns
// the first faults and the number of all.
//
// It sorts a hash of each custom_id, 16 bytes per line in memory, and reads lines with equal hashes
// again, so the result is exact.
func (s *Server) duplicateIDs(
	ctx context.Context, inputs []store.Input,
) (faults []batchfile.Fault, total int, err error) {
	opened := make([]*lines, len(inputs))
	for i, input := range inputs {
		if opened[i], err = openLines(ctx, s.blobs, input.BlobKey, input.IndexKey,
			input.Lines); err != nil {
			return nil, 0, fmt.Errorf("file %s: %w", input.FileID, damagedInputError(
				err, input.FileID))
		}
		defer opened[i].Close() //nolint:gocritic // all are used below
	}
	hashed, err := hashIDs(ctx, opened)
	if err != nil {
		return nil, 0, err
	}
	var duplicates []duplicate
	for len(hashed) > 0 {
		n := 1
		for n < len(hashed) && hashed[n].hash == hashed[0].hash {
			n++
		}
		if n > 1 {
			if duplicates, err = appendDuplicates(duplicates, opened, hashed[:n]); err != nil {
				return nil, 0, err
			}
		}
		hashed = hashed[n:]
	}
	slices.SortFunc(duplicates, func(a, b duplicate) int { return a.line.compare(b.line) })
	for _, r := range duplicates[:min(len(duplicates), maxFaults)] {
		fault, err := r.fault(opened, inputs)
		if err != nil {
			return nil, 0, err
		}
		faults = append(faults, fault)
	}
	return faults, len(duplicates), nil
}

// place identifies a line of one of several inputs.
type place struct{ input, number uint32 }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.input, q.input), cmp.Compare(p.number, q.number))
}

func (p place) read(opened []*lines) (line batchfile.Line, id string, err error) {
	var one [1]batchfile.Line
	l := opened[p.input]
	if _, err := l.index.Read(int(p.number), one[:]); err != nil {
		return line, "", err
	}
	var buf []byte
	id, err = l.customID(one[0], &buf)
	return one[0], id, err
}

type hashedID struct {
	hash uint64
	place
}

// hashIDs returns the hashes of all custom_ids, sorted; equal ones in the order of their lines.
func hashIDs(ctx context.Context, opened []*lines) ([]hashedID, error) {
	count := 0
	for _, l := range opened {
		count += l.index.Len()
	}
	hashed := make([]hashedID, 0, count)
	seed := maphash.MakeSeed()
	var buf []byte
	for i, l := range opened {
		err := l.each(ctx, func(line batchfile.Line) error {
			id, err := l.customID(line, &buf)
			hashed = append(hashed, hashedID{maphash.String(seed, id), place{
				uint32(i), line.Number}})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(hashed, func(a, b hashedID) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), a.place.compare(b.place))
	})
	return hashed, nil
}

// duplicate is a line with the custom_id of an earlier line.
type duplicate struct{ line, first place }

func appendDuplicates(
	duplicates []duplicate, opened []*lines, sameHash []hashedID,
) ([]duplicate, error) {
	first := make(map[string]place, 1)
	for _, h := range sameHash {
		_, id, err := h.place.read(opened)
		if err != nil {
			return nil, err
		}
		if at, used := first[id]; used {
			duplicates = append(duplicates, duplicate{line: h.place, first: at})
		} else {
			first[id] = h.place
		}
	}
	return duplicates, nil
}

func (r duplicate) fault(opened []*lines, inputs []store.Input) (batchfile.Fault, error) {
	line, id, err := r.line.read(opened)
	if err != nil {
		return batchfile.Fault{}, err
	}
	first, _, err := r.first.read(opened)
	if err != nil {
		return batchfile.Fault{}, err
	}
	return batchfile.Fault{
		Code: batchfile.CodeDuplicateCustomID,
		Message: fmt.Sprintf("File %s: the custom_id %q of this line is also that of line %d of "+
			"file %s; make it unique, or set '%s.outputs': 'per_input'.",
			inputs[r.line.input].FileID, shortened(id), first.Row,
			inputs[r.first.input].FileID, extensionsKey),
		Param: "custom_id",
		Line:  int(line.Row),
	}, nil
}
