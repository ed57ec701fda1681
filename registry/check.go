package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/internal/faults"
)

func validName(f *faults.List, name string) {
	if n := utf8.RuneCountInString(name); n < 1 || n > maxName {
		f.Add("name", "has %d characters, must have 1 to %d", n, maxName)
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
