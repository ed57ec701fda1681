package tables

import (
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// ChunkColumns are the columns that ScanChunk reads.
const ChunkColumns = `batch, idx, model, first, count, epoch, done, completed, failed, usage,
	counted`

// ScanChunk reads a chunk. Only one that is done has usage.
func ScanChunk(row Row) (c store.Chunk, err error) {
	var usage []byte
	var counted int64
	err = row.Scan(&c.Batch, &c.Index, &c.Model, &c.First, &c.Count, &c.Epoch, &c.Done,
		&c.Tally.Completed, &c.Tally.Failed, &usage, &counted)
	if counted != 0 {
		c.Counted = time.UnixMicro(counted).UTC()
	}
	if err == nil && c.Done {
		var of tally
		of, err = Decode[tally](usage)
		c.Tally.Usage, c.Tally.Bytes = of.Usage, of.Bytes
	}
	return c, err
}

// tally is what the column usage holds.
type tally struct {
	batchfile.Usage
	Bytes int64 `json:",omitempty"`
}

// EncodeTally returns the column usage of a chunk.
func EncodeTally(t store.Tally) ([]byte, error) { return Encode(tally{t.Usage, t.Bytes}) }

// LinesLeft counts the lines that chunks have left, by batch and model.
type LinesLeft map[string]map[string]int

// Scan adds a row of batch, model and number.
func (l LinesLeft) Scan(row Row) error {
	var batch, model string
	var lines int
	err := row.Scan(&batch, &model, &lines)
	if l[batch] == nil {
		l[batch] = map[string]int{}
	}
	l[batch][model] = lines
	return err
}
