package frame

import "github.com/tidefill/tidefill/store"

// Pending holds encoded records that are not durable, and their sum.
type Pending struct {
	Frames []byte
	Sum    store.Commit
}

// Add encodes a record and counts it.
func (p *Pending) Add(epoch int64, r *store.Record) {
	p.Frames = Append(p.Frames, Record, epoch, r)
	p.Sum.Bytes += ResultSize(r)
	p.Sum.Written += ResultSize(r)
	p.Count(r)
}

// Count counts a record without its bytes.
func (p *Pending) Count(r *store.Record) {
	p.Sum.Records++
	if r.Failed {
		p.Sum.Failed++
	} else {
		p.Sum.Completed++
	}
	p.Sum.Usage.Add(r.Usage)
}
