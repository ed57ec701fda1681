package compare

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

// OpenProfile returns the bundled profile of a name, or reads a file. The error is a RequestError
// if there is neither.
func OpenProfile(nameOrFile string) (profile.File, error) {
	if p, ok := engine.ProfileNamed(nameOrFile); ok {
		return profile.Bundled(p), nil
	}
	in, err := os.Open(nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		var names []string
		for _, p := range engine.Profiles() {
			names = append(names, p.Name)
		}
		return profile.File{}, RequestErrorf("%q is neither a file nor a bundled profile; "+
			"those are %s", nameOrFile, strings.Join(names, ", "))
	}
	if err != nil {
		return profile.File{}, err
	}
	defer in.Close()
	return profile.Read(nameOrFile, in)
}
