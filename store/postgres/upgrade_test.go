package postgres_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

// Replicas are upgraded one by one: the first new one migrates while older ones go on. So
// migrations only add, and what they add to a table has a default. A trigger may be added on
// changes of a column that the same migration adds, since older processes don't change it.
func TestMigrationsOnlyAdd(t *testing.T) {
	comment := regexp.MustCompile(`(?m)--.*$|(?s)\$\$.*?\$\$`) // and bodies of functions
	trigger := regexp.MustCompile(`^CREATE TRIGGER \w+ AFTER UPDATE OF (\w+) ON (\w+) `)
	for i, script := range postgres.MigrationScripts()[1:] { // the first makes the schema
		for statement := range strings.SplitSeq(comment.ReplaceAllString(script, ""), ";\n") {
			statement = strings.Join(strings.Fields(statement), " ")
			if statement == "" || regexp.MustCompile(
				`^(INSERT INTO|CREATE (TABLE|INDEX|UNIQUE INDEX|SEQUENCE|FUNCTION|UNLOGGED TABLE)) `).MatchString(
				statement) {
				continue
			}
			if on := trigger.FindStringSubmatch(statement); on != nil && strings.Contains(script,
				"ALTER TABLE "+on[2]+" ADD COLUMN "+on[1]+" ") {
				continue
			}
			columns, alters := strings.CutPrefix(statement, "ALTER TABLE ")
			_, columns, _ = strings.Cut(columns, " ")
			for column := range strings.SplitSeq(strings.TrimSuffix(columns, ";"), ", ") {
				if !alters || !strings.HasPrefix(column, "ADD COLUMN ") ||
					strings.Contains(column, "NOT NULL") && !strings.Contains(column, "DEFAULT") {
					t.Errorf("migration %d: %q can break older processes that run", i+2, statement)
				}
			}
		}
	}
}

// A process goes on, with the statements that its connections have prepared, while a newer release
// adds to each table. It does not start again.
func TestAProcessGoesOnWhileANewerReleaseMigrates(t *testing.T) {
	server := testpostgres.Shared(t)
	database := server.NewDatabase(t)
	db := open(t, server.URL(database), postgres.Options{})
	work(t, db, "before")
	server.Exec(t, database, `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
			EXECUTE format('ALTER TABLE %I ADD COLUMN newer text NOT NULL DEFAULT %L', name, 'x');
		END LOOP; END $$`)
	server.Exec(t, database, "UPDATE schema_version SET version = version + 1")
	work(t, db, "after")
	if _, err := postgres.Open(t.Context(), config(t, server.URL(database)),
		postgres.Options{}); err == nil || !strings.Contains(err.Error(), "newer than") {
		t.Errorf("start with a newer schema: %v", err)
	}
}

// work does with a database what a daemon does.
func work(t *testing.T, db *postgres.DB, id string) {
	t.Helper()
	ctx, now := t.Context(), time.Now().UTC()
	o, err := db.Register(ctx, "n", time.Minute)
	must(t, err)
	_, err = db.Join(ctx, o, "team")
	must(t, err)
	must(t, db.Renew(ctx, o, time.Minute))
	_, _, err = db.Lead(ctx, o, []string{"m"})
	must(t, err)
	must(t, db.CreateFile(ctx, store.File{ID: "f" + id, Tenant: "t", Purpose: "batch",
		CreatedAt: now, BlobKey: "files/" + id}))
	must(t, db.CreateUpload(ctx, store.Upload{ID: "u" + id, Tenant: "t",
		State: store.UploadPending, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}))
	b := store.Batch{ID: "b" + id, Tenant: "t", State: store.InProgress, CreatedAt: now,
		Inputs: []store.Input{{FileID: "f" + id, BlobKey: "files/" + id, Lines: 5}}}
	must(t, db.CreateBatch(ctx, b))
	must(t, db.AddChunks(ctx, b.ID, []store.Chunk{{ChunkID: store.ChunkID{Batch: b.ID},
		Model: "m", Count: 5}}))
	chunks, err := db.ClaimChunks(ctx, o, b.ID, "m", 1, nil)
	must(t, err)
	if len(chunks) != 1 {
		t.Fatalf("%s: claimed %d chunks, want 1", id, len(chunks))
	}
	must(t, db.PostProgress(ctx, o, map[string]store.ProgressPost{b.ID: {}}))
	must(t, db.FinishChunks(ctx, o, chunks...))
	_, _, err = db.ChangedBatches(ctx, "", 10)
	must(t, err)
	stored, err := db.Batch(ctx, "t", b.ID)
	must(t, err)
	stored.State, stored.FailedAt = store.Failed, now
	_, err = db.UpdateBatch(ctx, stored)
	must(t, err)
	if page, err := db.ListFiles(ctx, "t", store.FileQuery{}); err != nil ||
		len(page.Items) == 0 {
		t.Errorf("%s: list files: %v", id, err)
	}
	_, err = db.Newest(ctx)
	must(t, err)
	must(t, db.Resign(ctx, o, []string{"m"}))
}

// The release before processes were stored with leases registers without one.
func TestAnEarlierReleaseRegistersBesideThisOne(t *testing.T) {
	server := testpostgres.Shared(t)
	database := server.NewDatabase(t)
	db := open(t, server.URL(database), postgres.Options{})
	db.RegisterAs(store.Process{ID: "1", Host: "h", PID: 7})
	earlier := func(node string) {
		server.Exec(t, database, fmt.Sprintf(`INSERT INTO owners AS o
			(node, incarnation, lease_until) VALUES ('%s', 1, tidefill_now() + 60000000)
			ON CONFLICT (node) DO UPDATE SET incarnation = o.incarnation + 1,
				lease_until = excluded.lease_until, team = ''`, node))
	}
	earlier("a")
	_, err := db.Register(t.Context(), "a", time.Minute)
	var taken *store.NameTaken
	if !errors.As(err, &taken) || taken.Holder != (store.Process{}) {
		t.Errorf("register the name of an earlier release: %v", err)
	}
	o, err := db.Register(t.Context(), "b", time.Minute)
	must(t, err)
	must(t, db.Renew(t.Context(), o, time.Minute))
}
