package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

// place is where the bytes of files are: a bucket or a directory. The database knows its place by
// name and by a marker, an object there whose first line is the id of the installation and whose
// second one is random. Two places never have the same marker, unless one is a copy of the other.
type place interface {
	// name names the place for people, and the database stores it.
	name() string
	// key is the key of the configuration that names it.
	key() string
	// same reports whether a stored name can be the one of this place.
	same(known string) bool
	// marker is the name of the marker.
	marker() string
	// object names an object of the place for people.
	object(name string) string
	// remedy says what to do if this is not the place of the database.
	remedy() string
	// read reads a small object. store.ErrNotFound: there is none.
	read(ctx context.Context, name string) (string, error)
	// write writes one. onlyNew: store.ErrExists if there is one.
	write(ctx context.Context, name, content string, onlyNew bool) error
	// expect sets the content that the marker must have from now on.
	expect(marker string)
	// misplaced implements store.Backend.Misplaced.
	misplaced(ctx context.Context) error
}

func isDirectory(name string) bool { return strings.HasPrefix(name, "directory ") }

// ifMoved ends messages about a place that is not the one of the database.
const ifMoved = "if the files were moved here, stop all processes and run `tidefill store check " +
	"--accept` with this configuration"

// verify returns an error unless p is the place that the database knows.
func verify(ctx context.Context, p place, known postgres.Place) error {
	if !p.same(known.Name) {
		return fmt.Errorf("this database has its files in %s, and the configuration names %s; %s; "+
			ifMoved, known.Name, p.name(), p.remedy())
	}
	content, err := p.read(ctx, p.marker())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("this database has its files in %s, and there is no %s in %s, by which "+
			"they are recognized; %s; "+ifMoved, known.Name, p.object(p.marker()), p.name(),
			p.remedy())
	case err != nil:
		return fmt.Errorf("read the marker of %s: %w", p.name(), err)
	case content != known.Marker:
		return fmt.Errorf("this database has its files in %s, recognized by the marker %s, and %s "+
			"has the marker %s; %s; "+ifMoved, known.Name, line(known.Marker), p.name(),
			line(content), p.remedy())
	}
	return nil
}

// settle verifies that p is the place of the database. A database that knows none gets it: a new
// one if it has no marker, one of an earlier release if its marker is that of the installation.
func settle(
	ctx context.Context, db *postgres.DB, p place, blobs store.Blobs,
) (postgres.Place, error) {
	known, err := db.Place(ctx)
	if err == nil && known.Name == "" {
		known, err = db.SetPlace(ctx,
			func(ctx context.Context, known postgres.Place) (postgres.Place, error) {
				if known.Name != "" { // another process was first
					return known, nil
				}
				return claim(ctx, db, p, blobs)
			})
	}
	if err != nil {
		return postgres.Place{}, err
	}
	return known, verify(ctx, p, known)
}

// claim makes p the place of a database that knows none.
func claim(
	ctx context.Context, db *postgres.DB, p place, blobs store.Blobs,
) (postgres.Place, error) {
	newest, err := db.NewestBlobs(ctx, 8)
	if err != nil {
		return postgres.Place{}, err
	}
	marked, err := isMarked(ctx, db, p)
	if err != nil {
		return postgres.Place{}, err
	}
	if len(newest) > 0 {
		// An earlier release wrote its marker into any place that it was started with.
		found, err := hasOne(ctx, blobs, newest)
		if err != nil {
			return postgres.Place{}, err
		}
		if !marked || !found {
			return postgres.Place{}, fmt.Errorf("this database has files, and %s has none of them "+
				"(such as %s); %s; "+ifMoved, p.name(), newest[0], p.remedy())
		}
	}
	return mark(ctx, db, p, !marked)
}

// isMarked reports whether the place has a marker of this installation. That of another one is an
// error.
func isMarked(ctx context.Context, db *postgres.DB, p place) (bool, error) {
	content, err := p.read(ctx, p.marker())
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the marker of %s: %w", p.name(), err)
	}
	id, _, _ := strings.Cut(content, "\n")
	if id = strings.TrimSpace(id); id != db.ClusterID() {
		return false, fmt.Errorf("%s belongs to the installation %q, and the database is that of "+
			"%q; give each its own, or delete %s if that installation is gone", p.name(), id,
			db.ClusterID(), p.object(p.marker()))
	}
	return true, nil
}

// accept makes p the place of the database, and the age of the database the one that it is to have.
// While processes run, p must be its place already.
func accept(ctx context.Context, db *postgres.DB, p place) error {
	owners, err := db.KnownOwners(ctx)
	if err != nil {
		return err
	}
	running := slices.IndexFunc(owners, func(o store.KnownOwner) bool { return o.LeaseLeft > 0 })
	_, err = db.SetPlace(ctx,
		func(ctx context.Context, known postgres.Place) (postgres.Place, error) {
			fault := verify(ctx, p, known)
			switch {
			case running >= 0 && fault == nil:
				return known, nil
			case running >= 0:
				return postgres.Place{}, fmt.Errorf("the lease of node %s lasts: it runs, or was "+
					"killed less than dispatch.tuning.lease_ttl ago; stop all processes before "+
					"another place is accepted: %w", owners[running].Node, fault)
			}
			// A new marker, so that a copy of this place is none.
			marked, err := isMarked(ctx, db, p)
			if err != nil {
				return postgres.Place{}, err
			}
			return mark(ctx, db, p, !marked)
		})
	if err != nil {
		return fmt.Errorf("%s: %w", p.key(), err)
	}
	return db.AcceptAge(ctx)
}

// mark writes a new marker.
func mark(
	ctx context.Context, db *postgres.DB, p place, onlyNew bool,
) (made postgres.Place, err error) {
	made = postgres.Place{Name: p.name(), Marker: db.ClusterID() + "\n" + rand.Text() + "\n"}
	if err := p.write(ctx, p.marker(), made.Marker, onlyNew); err != nil {
		return postgres.Place{}, fmt.Errorf("mark %s as that of the database: %w", p.name(), err)
	}
	return made, nil
}

// hasOne reports whether one of the blobs is there.
func hasOne(ctx context.Context, blobs store.Blobs, keys []string) (bool, error) {
	for _, key := range keys {
		blob, err := blobs.Open(ctx, key)
		if err == nil {
			return true, blob.Close()
		}
		if !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// line is the content of a marker in one line.
func line(marker string) string { return strings.Join(strings.Fields(marker), "/") }
