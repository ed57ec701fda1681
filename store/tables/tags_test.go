package tables_test

import (
	"slices"
	"testing"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Databases hold these numbers: another one makes their batches invisible to filters.
func TestTagsStayTheSame(t *testing.T) {
	b := store.Batch{Tenant: "t", Models: []store.ModelLines{{Model: "m"}, {Model: "m"}},
		Metadata: map[string]string{"k": "v"}}
	want := []int64{-3661837653350041439, 149617275490816215, 7780347389217806627}
	if got := tables.BatchTags(b); !slices.Equal(got, want) {
		t.Errorf("tags of a batch = %d, want %d", got, want)
	}
	for _, q := range []store.BatchQuery{
		{Model: "m"}, {MetadataKey: "k"}, {MetadataKey: "k", MetadataValue: "v"},
	} {
		for _, tag := range tables.QueryTags("t", q) {
			if !slices.Contains(want, tag) {
				t.Errorf("tag %d of %+v is not one of the batch", tag, q)
			}
		}
	}
}

func TestPositionsSurviveText(t *testing.T) {
	p := tables.Position{At: -5, Seq: 7}
	if got, err := tables.ParsePosition(p.String()); err != nil || got != p {
		t.Errorf("position %+v reads as %+v, %v", p, got, err)
	}
}
