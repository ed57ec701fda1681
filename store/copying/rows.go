package copying

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/tidefill/tidefill/store"
)

// rowsAtOnce is the number of rows that one transaction writes.
const rowsAtOnce = 100

// copyRows makes the records of the target equal to those of the source.
func (c *copier) copyRows(ctx context.Context) error {
	for _, kind := range store.RowKinds {
		if kind == store.BatchRows {
			if err := c.copyCursors(ctx); err != nil {
				return err
			}
		}
		if err := c.copyKind(ctx, kind, nil); err != nil {
			return err
		}
	}
	return nil
}

// copyCursors copies up to which change of batches endpoints have notices. Positions of one store
// mean nothing in another one. So batches that an endpoint has seen as they are come first, then
// its cursor in the target, and then those that it has not seen.
func (c *copier) copyCursors(ctx context.Context) error {
	from, to := c.from.Backend.Records, c.to.Backend.Records
	endpoints, err := from.NoticeEndpoints(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	unseen := map[string]bool{}
	for _, endpoint := range endpoints {
		if err := c.addUnseen(ctx, endpoint, unseen); err != nil {
			return fmt.Errorf("%s: %w", c.from.Name, err)
		}
	}
	if len(endpoints) == 0 {
		return nil
	}
	if err := c.copyKind(ctx, store.BatchRows, unseen); err != nil {
		return err
	}
	for _, endpoint := range endpoints {
		at, err := to.NoticeCursor(ctx, endpoint)
		var now store.Cursor
		if err == nil && at == "" {
			_, now, err = to.ChangedBatches(ctx, "", 1)
		}
		if err == nil && at == "" {
			err = to.AddNotices(ctx, endpoint, "", now, nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.to.Name, err)
		}
	}
	return nil
}

// addUnseen adds the batches that have changed since the endpoint's cursor.
func (c *copier) addUnseen(ctx context.Context, endpoint string, unseen map[string]bool) error {
	const page = 1000
	from := c.from.Backend.Records
	at, err := from.NoticeCursor(ctx, endpoint)
	if err != nil {
		return err
	}
	for {
		ids, next, err := from.ChangedBatches(ctx, at, page)
		if errors.Is(err, store.ErrBadCursor) {
			return nil // the daemon starts again too
		}
		if err != nil {
			return err
		}
		for _, id := range ids {
			unseen[id] = true
		}
		if len(ids) < page {
			return nil
		}
		at = next
	}
}

// verifyRows compares all records again.
func (c *copier) verifyRows(ctx context.Context) error {
	for _, kind := range store.RowKinds {
		err := c.compare(ctx, kind, nil, func(has, row *store.Row) error {
			switch {
			case has == nil:
				return fmt.Errorf("%s: %v is missing after it was written", kind, row.Key)
			case row == nil:
				return fmt.Errorf("%s: %v is there after it was removed", kind, has.Key)
			case !reflect.DeepEqual(has.Value, row.Value):
				return fmt.Errorf("%s: %v differs after it was written", kind, row.Key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copyKind makes the rows of one kind equal. Batches in without are left as they are.
func (c *copier) copyKind(ctx context.Context, kind store.RowKind, without map[string]bool) error {
	w := writer{c: c, kind: kind, again: without != nil}
	if err := c.compare(ctx, kind, without, func(has, row *store.Row) error {
		switch {
		case row == nil:
			w.removed = append(w.removed, has.Key)
		case has == nil || !reflect.DeepEqual(has.Value, row.Value):
			w.rows = append(w.rows, *row)
		default:
			w.same++
		}
		return w.flush(ctx, rowsAtOnce)
	}); err != nil {
		return err
	}
	return w.flush(ctx, 0)
}

// writer collects the changes of a transaction.
type writer struct {
	c       *copier
	kind    store.RowKind
	rows    []store.Row
	removed []store.RowKey
	same    int
	again   bool // the rows are compared once more
}

// flush writes the changes if there are more than so many.
func (w *writer) flush(ctx context.Context, most int) error {
	if len(w.rows)+len(w.removed) > most {
		if err := w.c.to.Backend.Records.ImportRows(ctx, w.kind, w.rows, w.removed); err != nil {
			return fmt.Errorf("%s: %w", w.c.to.Name, err)
		}
	} else if most > 0 {
		return nil
	}
	w.c.report.update(func(s *Summary) {
		n := s.Rows[w.kind]
		if !w.again {
			n.Total += w.same + len(w.rows)
		}
		n.Written += len(w.rows)
		n.Removed += len(w.removed)
		s.Rows[w.kind] = n
	})
	w.rows, w.removed, w.same = nil, nil, 0
	return nil
}

// compare calls each for every row of a kind, with that of the target and that of the source; nil:
// there is none.
func (c *copier) compare(
	ctx context.Context, kind store.RowKind, without map[string]bool,
	each func(has, row *store.Row) error,
) error {
	source := pull(ctx, c.from, kind, without)
	defer source.stop()
	target := pull(ctx, c.to, kind, without)
	defer target.stop()
	row, has := source.next(), target.next()
	for row != nil || has != nil {
		if source.err != nil || target.err != nil {
			break
		}
		var order int
		switch {
		case row == nil:
			order = 1
		case has == nil:
			order = -1
		default:
			order = row.Key.Compare(has.Key)
		}
		var err error
		switch {
		case order < 0:
			err = each(nil, row)
			row = source.next()
		case order > 0:
			err = each(has, nil)
			has = target.next()
		default:
			err = each(has, row)
			row, has = source.next(), target.next()
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(source.err, target.err)
}

// stream is the rows of one store.
type stream struct {
	name    string
	kind    store.RowKind
	read    func() (store.Row, error, bool)
	stop    func()
	without map[string]bool
	err     error
}

func pull(
	ctx context.Context, side Side, kind store.RowKind, without map[string]bool,
) *stream {
	s := &stream{name: side.Name, kind: kind, without: without}
	s.read, s.stop = iter.Pull2(side.Backend.Records.ExportRows(ctx, kind))
	return s
}

// next returns the next row; nil: there is none, or err is set.
func (s *stream) next() *store.Row {
	for {
		row, err, ok := s.read()
		if err != nil {
			s.err = fmt.Errorf("%s: %w", s.name, err)
		}
		if !ok || err != nil {
			return nil
		}
		if s.kind == store.EpochRows && row.Key.Name == store.CopyLock {
			continue // of this copy, in each store
		}
		if b, is := row.Value.(store.StoredBatch); !is || !s.without[b.ID] {
			return &row
		}
	}
}
