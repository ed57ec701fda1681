package frame

import (
	"context"

	"github.com/tidefill/tidefill/store"
)

// Records calls each for every valid record of a journal, with the location of its result.
func (s *Scanner) Records(
	ctx context.Context, each func(store.Record, store.Location) error,
) error {
	var v Validity
	for s.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !v.Accept(s.Frame) {
			continue
		}
		at := store.Location{Offset: s.From + EmptySize, Length: uint32(s.Result)}
		if err := each(s.Frame.Record, at); err != nil {
			return err
		}
	}
	return s.Err
}
