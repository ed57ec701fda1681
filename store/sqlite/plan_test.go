package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store/sqlite"
)

func TestListingsScanIndexes(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "tidefill.db"), time.Now)
	for _, order := range [][2]string{{"created", "due"}, {"due", "created"}} {
		for _, ascending := range []bool{true, false} {
			for tags := range 3 {
				for _, tied := range []bool{false, true} {
					query, args := sqlite.ListingQuery(order[0], order[1], ascending, tied, tags)
					for _, step := range sqlite.Plans(t, db, query, args...) {
						if strings.Contains(step, "TEMP B-TREE") || strings.Contains(
							step, "SCAN b") {
							t.Errorf(
								"order %s, ascending %t, tied %t, %d tags: %s", order[0], ascending,
								tied, tags, step)
						}
					}
				}
			}
		}
	}
}
