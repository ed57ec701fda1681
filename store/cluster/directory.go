package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// marker is the file in a directory that names the installation which the directory belongs to.
const marker = "cluster-id"

// claimDirectory marks the directory as that of an installation. It fails if the directory belongs
// to another one: each would sweep the files of the other.
func claimDirectory(directory, id string) error {
	path := filepath.Join(directory, marker)
	draft, err := os.CreateTemp(directory, marker+"-*")
	if err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(id + "\n")
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	// A link either makes the complete file or finds one, also if several processes begin at once.
	if err = os.Link(draft.Name(), path); err == nil {
		return nil
	}
	if !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	owner, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read whose data directory it is: %w", err)
	}
	if found := strings.TrimSpace(string(owner)); found != id {
		return fmt.Errorf("data directory %s belongs to the installation %q, and the database is "+
			"that of %q; give each its own directory", directory, found, id)
	}
	return nil
}
