package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// backup copies a directory that a daemon may have open. The copy is one that a crash at the time
// of the database's copy would have left: files are added before, for those that are deleted
// afterwards, and after, for those that were created in between.
func backup(ctx context.Context, o store.OpenOptions, to string) (sum store.Backup, err error) {
	database := filepath.Join(o.Directory, databaseFile)
	if _, err := os.Stat(database); err != nil {
		return sum, fmt.Errorf("back up %s: %w; is it the data directory of a daemon?",
			o.Directory, err)
	}
	if _, err := os.Stat(to); err == nil {
		return sum, fmt.Errorf("back up %s: %s exists; name a new directory", o.Directory, to)
	}
	if inside(o.Directory, to) {
		return sum, fmt.Errorf("back up %s: %s is inside of it; name a directory elsewhere",
			o.Directory, to)
	}
	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(to)), filepath.Base(to)+".*.part")
	if err != nil {
		return sum, fmt.Errorf("back up %s: %w", o.Directory, err)
	}
	err = disk.Backup(ctx, o.Directory, part, &sum)
	if err == nil {
		err = sqlite.Backup(ctx, database, filepath.Join(part, databaseFile))
	}
	if err == nil {
		err = disk.Backup(ctx, o.Directory, part, &sum)
	}
	if err == nil {
		err = errors.Join(os.Chmod(part, 0o750), disk.SyncTree(part))
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		return sum, errors.Join(err, os.RemoveAll(part))
	}
	return sum, nil
}

// inside reports whether a path is below a directory.
func inside(directory, path string) bool {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	return strings.HasPrefix(path, directory+string(filepath.Separator))
}
