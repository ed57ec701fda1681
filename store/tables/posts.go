package tables

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tidefill/tidefill/store"
)

// EncodePosts returns the batches of the posts with their documents.
func EncodePosts(posts map[string]store.ProgressPost) (batches []string, docs [][]byte, err error) {
	for batch, p := range posts {
		Truncate(&p.UpdatedAt)
		doc, err := Encode(p)
		if err != nil {
			return nil, nil, fmt.Errorf("post progress of batch %s: %w", batch, err)
		}
		batches, docs = append(batches, batch), append(docs, doc)
	}
	return batches, docs, nil
}

// Posts are progress posts by batch and node.
type Posts map[string]map[string]store.ProgressPost

// Scan adds a row of batch, node, incarnation and document.
func (p Posts) Scan(row Row) error {
	var batch string
	var owner store.Owner
	var doc []byte
	if err := row.Scan(&batch, &owner.Node, &owner.Incarnation, &doc); err != nil {
		return err
	}
	post, err := Decode[store.ProgressPost](doc)
	post.Owner = owner
	p.add(batch, post)
	return err
}

func (p Posts) add(batch string, post store.ProgressPost) {
	if p[batch] == nil {
		p[batch] = map[string]store.ProgressPost{}
	}
	p[batch][post.Owner.Node] = post
}

// With returns the posts about each batch by node, with those about the batches that a full disk
// did not take in the place of stored ones.
func (p Posts) With(u *Unposted, batches []string) map[string][]store.ProgressPost {
	for _, batch := range batches {
		u.addTo(p, batch)
	}
	ordered := make(map[string][]store.ProgressPost, len(p))
	for batch, byNode := range p {
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			ordered[batch] = append(ordered[batch], byNode[node])
		}
	}
	return ordered
}
