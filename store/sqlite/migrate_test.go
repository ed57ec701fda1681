package sqlite_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// TestMigrations opens a database of the first schema.
func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, path, string(schema))
	exec(t, path, `PRAGMA user_version = 1;
		INSERT INTO files (id, tenant, purpose, created, expires, doc) VALUES
			('f1', 't', 'batch', 0, 9e18, CAST('{"ID":"f1","Tenant":"t","Filename":"<ü\u0000>","Summary":{"lines":3,"bytes":12345678901,"fault_count":0},"Bytes":5}' AS BLOB)),
			('f2', 't', 'batch', 0, 9e18, CAST('{"ID":"f2","Tenant":"t","Summary":null,"Bytes":6}' AS BLOB));
		INSERT INTO uploads (id, tenant, state, expires, doc) VALUES ('u', 't', 'pending', 9e18, CAST('{"ID":"u","Tenant":"t"}' AS BLOB));
		INSERT INTO parts (id, upload, doc) VALUES ('p', 'u', CAST('{"ID":"p","Bytes":7}' AS BLOB));
		INSERT INTO batches (id, tenant, version, revision, state, created, due, ended, doc) VALUES
			('b1', 't', 4, 1, 'in_progress', 0, 0, 0, CAST('{"ID":"b1","Tenant":"t","Version":4,"State":"in_progress","Options":{"Priority":3,"Defaults":[{"URL":"","Model":"m","Parameters":{"seed":12345678901234567890,"x":1.50}}],"Overrides":null},"OptionsJSON":{"priority":3,"defaults":{"by_model":{"m":{"seed":12345678901234567890,"x":1.50}}}}}' AS BLOB)),
			('b2', 't', 1, 2, 'validating', 0, 0, 0, CAST('{"ID":"b2","Tenant":"t","Version":1,"State":"validating","Options":{"Priority":0,"Defaults":null,"Overrides":null}}' AS BLOB))`)

	db, ctx := open(t, path, time.Now), t.Context()
	same := func(what string, got, want any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	f, err := db.File(ctx, "t", "f1")
	same("file", f, store.File{ID: "f1", Tenant: "t", Filename: "<ü\x00>", Bytes: 5,
		Summary: &batchfile.Summary{Lines: 3, Bytes: 12345678901}}, err)
	f, err = db.File(ctx, "t", "f2")
	same("file without a summary", f, store.File{ID: "f2", Tenant: "t", Bytes: 6}, err)
	used, err := db.UsedBytes(ctx, "t")
	same("usage", used, int64(5+6+7), err)
	if err := db.DropParts(ctx, "u"); err != nil {
		t.Fatal(err)
	}
	used, err = db.UsedBytes(ctx, "t")
	same("usage without parts", used, int64(5+6), err)
	b, err := db.Batch(ctx, "t", "b1")
	same("batch", b, store.Batch{ID: "b1", Tenant: "t", Version: 4, State: store.InProgress,
		Options:     store.Options{Priority: 3},
		OptionsJSON: json.RawMessage(`{"priority":3}`), Apart: []string{"defaults"}}, err)
	p, err := db.Parameters(ctx, "b1")
	same("parameters", p, store.Parameters{
		OptionsJSON: json.RawMessage(
			`{"priority":3,"defaults":{"by_model":{"m":{"seed":12345678901234567890,"x":1.50}}}}`),
		Defaults: []store.ParameterRule{{Model: "m", Parameters: map[string]json.RawMessage{
			"seed": json.RawMessage("12345678901234567890"), "x": json.RawMessage("1.50")}}},
	}, err)
	b, err = db.Batch(ctx, "t", "b2")
	same("batch without options", b, store.Batch{ID: "b2", Tenant: "t", Version: 1,
		State: store.Validating}, err)
	p, err = db.Parameters(ctx, "b2")
	same("parameters of a batch without any", p, store.Parameters{}, err)
}
