package dispatch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/internal/suggest"
)

const (
	maxNames  = 10 // names that a sentence lists
	maxOfName = 80 // bytes of a name that a sentence shows
)

// notServed returns the sentence for users that no runner serves a model, with the nearest served
// name.
func notServed(model string, served []string) string {
	what := "model " + shown(model) + " is served by no runner"
	if model == "" {
		what = "lines without a model are served by no runner"
	}
	if len(served) == 0 {
		return what + "; no upstream lists a model."
	}
	sentence := what + "; served: " + nameList(served) + "."
	if near := suggest.Nearest(model, served); near != "" {
		sentence += " Did you mean " + shown(near) + "?"
	}
	return sentence
}

// nameList lists names, at most so many that a message stays readable.
func nameList(names []string) string {
	shortened := make([]string, 0, maxNames)
	for _, name := range names[:min(len(names), maxNames)] {
		quoted := shown(name)
		shortened = append(shortened, quoted[1:len(quoted)-1])
	}
	list := strings.Join(shortened, ", ")
	if more := len(names) - maxNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// shown quotes a name, and shortens a long one.
func shown(name string) string {
	if len(name) > maxOfName {
		cut := maxOfName
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	return strconv.Quote(name)
}
