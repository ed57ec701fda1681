package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/cluster"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/s3"
)

// withPrefix is inBucket below another prefix.
func withPrefix(
	t *testing.T, o store.OpenOptions, server *tests3.Server, prefix string,
) store.OpenOptions {
	o = inBucket(t, o, server)
	cfg := o.Config.(cluster.Config)
	cfg.Objects.Prefix = prefix
	o.Config = cfg
	return o
}

// storeFile stores a file that does not expire.
func storeFile(t *testing.T, b *store.Backend, id string) {
	t.Helper()
	w, err := b.Blobs.Create(t.Context(), "files/"+id)
	if err == nil {
		_, err = w.Write([]byte("content"))
	}
	if err == nil {
		err = w.Commit(t.Context())
	}
	if err == nil {
		err = b.Records.CreateFile(t.Context(), store.File{ID: id, Tenant: "t", Purpose: "batch",
			Bytes: 7, CreatedAt: time.Now().UTC(), BlobKey: "files/" + id})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that a store is not opened, and that the error has the words.
func refused(t *testing.T, what string, o store.OpenOptions, words ...string) {
	t.Helper()
	b, err := open(o)
	if err == nil {
		b.Close()
		t.Errorf("%s: it was opened", what)
		return
	}
	if errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%s: a start would wait: %v", what, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: got %v, want %q", what, err, word)
		}
	}
}

// A process whose bucket, prefix or directory is not the one of the database does not start, also
// before there are any files.
func TestAnotherPlaceIsRefused(t *testing.T) {
	server, other := tests3.Start(t), tests3.Start(t)
	database := testpostgres.Shared(t).NewDatabase(t)
	a := mustOpen(t, withPrefix(t, options(t, database, "", "a"), server, "p1"))
	check := func(when string) {
		t.Helper()
		refused(t, when+", another prefix",
			withPrefix(t, options(t, database, "", "b"), server, "p2"), "store.cluster.objects",
			"has its files in bucket "+tests3.Bucket+", prefix p1",
			"names bucket "+tests3.Bucket+", prefix p2", "correct bucket, prefix and endpoint",
			"tidefill store check")
		refused(t, when+", a storage without the objects",
			withPrefix(t, options(t, database, "", "b"), other, "p1"), "no object p1/cluster")
		empty := t.TempDir()
		refused(t, when+", a directory", options(t, database, empty, "b"), "data: ",
			"bucket "+tests3.Bucket+", prefix p1", "names directory "+empty)
		mustBeEmpty(t, empty)
	}
	check("without files")
	storeFile(t, a, "f")
	check("with files")
	mustOpen(t, withPrefix(t, options(t, database, "", "b"), server, "p1"))
}

func mustBeEmpty(t *testing.T, directory string) {
	t.Helper()
	if entries, err := os.ReadDir(directory); err != nil || len(entries) > 0 {
		t.Errorf("a refused start has made %v, %v", entries, err)
	}
}

// A directory that is not mounted is empty.
func TestADirectoryThatIsNotMountedIsRefused(t *testing.T) {
	database, directory, empty := testpostgres.Shared(t).NewDatabase(t), t.TempDir(), t.TempDir()
	mustOpen(t, options(t, database, directory, "a"))
	refused(t, "an empty directory", options(t, database, empty, "b"),
		"has its files in directory "+directory, "no file "+filepath.Join(empty, "cluster-id"),
		"mount the directory")
	mustBeEmpty(t, empty)
	// Machines may mount it at different paths.
	elsewhere := filepath.Join(t.TempDir(), "mount")
	if err := os.Symlink(directory, elsewhere); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, options(t, database, elsewhere, "b"))
}

// Of processes that start together on a new database, those with one place start, and all others
// are refused.
func TestFirstStartsAgreeOnAPlace(t *testing.T) {
	server, database := tests3.Start(t), testpostgres.Shared(t).NewDatabase(t)
	var mu sync.Mutex
	started := map[string]int{}
	var running sync.WaitGroup
	for i := range 6 {
		prefix := fmt.Sprint("p", i%2)
		o := withPrefix(t, options(t, database, "", fmt.Sprint("n", i)), server, prefix)
		running.Go(func() {
			b, err := open(o)
			if err != nil {
				if !strings.Contains(err.Error(), "this database has its files in bucket") {
					t.Errorf("prefix %s: %v", prefix, err)
				}
				return
			}
			mu.Lock()
			started[prefix]++
			mu.Unlock()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if len(started) != 1 || started["p0"]+started["p1"] != 3 {
		t.Errorf("started by prefix: %v, want 3 of one", started)
	}
}

// The release before this one wrote the id of the installation alone, into any place that it was
// started with. Only the one that has the files is adopted.
func TestThePlaceOfAnEarlierReleaseIsAdopted(t *testing.T) {
	server, database := tests3.Start(t), testpostgres.Shared(t).NewDatabase(t)
	in := func(prefix, node string) store.OpenOptions {
		return withPrefix(t, options(t, database, "", node), server, prefix)
	}
	b, err := open(in("p1", "a"))
	if err != nil {
		t.Fatal(err)
	}
	storeFile(t, b, "f")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"p1", "p2"} {
		writeSmall(t, in(prefix, "a"), s3.MarkerName, b.Records.(*postgres.DB).ClusterID()+"\n")
	}
	testpostgres.Shared(t).Exec(t, database, "UPDATE cluster SET place = NULL, marker = NULL")
	refused(t, "a place with a marker and no files", in("p2", "a"), "has files",
		"bucket "+tests3.Bucket+", prefix p2 has none of them")
	refused(t, "an empty place", in("p3", "a"), "prefix p3 has none of them")
	mustOpen(t, in("p1", "a"))
	mustOpen(t, in("p1", "b"))
	refused(t, "the other place, later", in("p2", "c"), "prefix p1", "prefix p2")
}

// writeSmall writes an object beside the files of a bucket.
func writeSmall(t *testing.T, o store.OpenOptions, name, content string) {
	t.Helper()
	b, err := s3.Open(t.Context(), o.Config.(cluster.Config).Objects, s3.Options{})
	if err == nil {
		err = errors.Join(b.WriteSmall(t.Context(), name, content, false), b.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A directory that is unmounted under a process, or another one mounted in its place, is noticed
// before anything is found missing there.
func TestADirectoryThatVanishesIsNoticed(t *testing.T) {
	database, directory := testpostgres.Shared(t).NewDatabase(t), t.TempDir()
	b := mustOpen(t, options(t, database, directory, "a"))
	storeFile(t, b, "f")
	marker := filepath.Join(directory, "cluster-id")
	if err := os.Rename(marker, marker+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Blobs.Open(t.Context(), "files/none"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("open a missing blob: got %v, want %v", err, store.ErrUnavailable)
	}
	if err := b.Misplaced(context.Background()); err == nil || !strings.Contains(err.Error(),
		marker) {
		t.Errorf("got %v, want the file", err)
	}
	if err := os.Rename(marker+".away", marker); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Blobs.Open(t.Context(), "files/none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open a missing blob of a directory that is back: %v", err)
	}
}

// Files that were moved are accepted when no process runs. From then on the old place is refused,
// also where a copy of the marker is left.
func TestAMovedPlaceIsAccepted(t *testing.T) {
	server, database := tests3.Start(t), testpostgres.Shared(t).NewDatabase(t)
	in := func(prefix, node string) store.OpenOptions {
		return withPrefix(t, options(t, database, "", node), server, prefix)
	}
	b, err := open(in("p1", "a"))
	if err != nil {
		t.Fatal(err)
	}
	storeFile(t, b, "f")
	owner, err := b.Records.Register(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	accept := func(prefix string) error {
		o := in(prefix, "check")
		o.Accepting = true
		b, err := open(o)
		if err != nil {
			return err
		}
		return errors.Join(b.Accept(t.Context()), b.Close())
	}
	if err := accept("p2"); err == nil || !strings.Contains(err.Error(), "stop all processes") {
		t.Errorf("another place while a process runs: %v", err)
	}
	if err := accept("p1"); err != nil {
		t.Errorf("the same place while a process runs: %v", err)
	}
	if err := errors.Join(b.Records.Unregister(t.Context(), owner), b.Close()); err != nil {
		t.Fatal(err)
	}
	if err := accept("p2"); err != nil {
		t.Fatal(err)
	}
	refused(t, "the old place", in("p1", "a"), "has its files in bucket "+tests3.Bucket+
		", prefix p2")
	mustOpen(t, in("p2", "a"))
}
