package tables

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/tidefill/tidefill/store"
)

// Kinds of tags.
const (
	modelTag      = "model"
	metadataKey   = "key"
	metadataValue = "value"
)

// hashTag returns the tag of the words: the first 64 bits of a SHA-256, so that two tags of one
// tenant do not collide in practice.
func hashTag(words ...string) int64 {
	var b []byte
	for _, w := range words {
		b = binary.AppendUvarint(b, uint64(len(w)))
		b = append(b, w...)
	}
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// BatchTags returns all tags of b in ascending order, each once.
func BatchTags(b store.Batch) []int64 {
	tags := make([]int64, 0, len(b.Models)+2*len(b.Metadata))
	for _, m := range b.Models {
		tags = append(tags, hashTag(b.Tenant, modelTag, m.Model))
	}
	for key, value := range b.Metadata {
		tags = append(tags, hashTag(b.Tenant, metadataKey, key), hashTag(b.Tenant, metadataValue,
			key, value))
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// QueryTags returns the tags that a batch must have to match q.
func QueryTags(tenant string, q store.BatchQuery) (tags []int64) {
	if q.Model != "" {
		tags = append(tags, hashTag(tenant, modelTag, q.Model))
	}
	switch {
	case q.MetadataKey == "":
	case q.MetadataValue == "":
		tags = append(tags, hashTag(tenant, metadataKey, q.MetadataKey))
	default:
		tags = append(tags, hashTag(tenant, metadataValue, q.MetadataKey, q.MetadataValue))
	}
	return tags
}
