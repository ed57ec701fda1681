package registry

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidefill/tidefill/internal/faults"
)

// validName reports a name or a version that is too long, or that logs, metrics and databases can't
// carry.
func validName(f *faults.List, path, name string) { validText(f, path, name, maxName) }

// validText is validName for texts of another length.
func validText(f *faults.List, path, name string, longest int) {
	if n := utf8.RuneCountInString(name); n < 1 || n > longest {
		f.Add(path, "has %d characters, must have 1 to %d", n, longest)
		return
	}
	for _, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			f.Add(path, "has the character %U, which can't be printed", r)
			return
		}
	}
}

// finite reports numbers that neither JSON nor an engine has.
func finite(f *faults.List, path string, value any) {
	switch of := value.(type) {
	case float64:
		if math.IsNaN(of) || math.IsInf(of, 0) {
			f.Add(path, "is %v, must be a finite number", of)
		}
	case []any:
		for i, element := range of {
			finite(f, fmt.Sprintf("%s[%d]", path, i), element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(of)) {
			finite(f, path+"."+key, of[key])
		}
	}
}

// within reports an integer out of a range.
func within(f *faults.List, path string, n, least, most int) {
	if n < least || n > most {
		f.Add(path, "is %d, must be from %d to %d", n, least, most)
	}
}

func required(f *faults.List, path, value string) {
	if strings.TrimSpace(value) == "" {
		f.Add(path, "is required")
	}
}

// oneOf reports a value that is none of an enumeration.
func oneOf(f *faults.List, path, value string, all []string) {
	switch {
	case value == "":
		f.Add(path, "is required, one of %s", strings.Join(all, ", "))
	case !slices.Contains(all, value):
		f.Add(path, "is %q, must be one of %s", value, strings.Join(all, ", "))
	}
}

// optional is oneOf for a value that may be empty.
func optional(f *faults.List, path, value string, all []string) {
	if value != "" {
		oneOf(f, path, value, all)
	}
}

func visibleTo(f *faults.List, tenants []string) {
	for i, tenant := range tenants {
		required(f, fmt.Sprintf("visible_to[%d]", i), tenant)
	}
}

func joined(f faults.List) error { return errors.Join(f...) }
