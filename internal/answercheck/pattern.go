package answercheck

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxProgram limits the instructions to which the patterns of a check compile. The time of a match
// is proportional to them and to the length of the text.
const maxProgram = 10_000

// pattern is a compiled pattern. Its matches spend a budget.
type pattern struct {
	*regexp.Regexp
	instructions int
	budget       *budget
}

func compilePattern(text string, b *budget) (*pattern, error) {
	if len(text) > MaxPattern {
		return nil, fmt.Errorf("a pattern has %d bytes; the limit is %d", len(text), MaxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := instructions(parsed)
	if b.instructions += n; b.instructions > maxProgram {
		return nil, fmt.Errorf("patterns compile to over %d instructions; repeat less, such as "+
			"{0,100} instead of {0,1000}", maxProgram)
	}
	compiled, err := regexp.Compile(text)
	return &pattern{compiled, n, b}, err
}

// instructions returns about the number of instructions to which a pattern compiles. Compiling one
// that is too large would take the memory that the limit saves.
func instructions(of *syntax.Regexp) int {
	n := 1 + len(of.Rune)/2
	for _, sub := range of.Sub {
		n += instructions(sub)
	}
	if of.Op == syntax.OpRepeat {
		n *= max(1, of.Min, of.Max)
	}
	return min(n, 2*maxProgram) // does not overflow
}

// MatchString reports whether a text contains a match. Only within may call it.
func (p *pattern) MatchString(text string) bool {
	p.budget.spend(1 + len(text)*p.instructions/instructionsPerStep)
	return p.Regexp.MatchString(text)
}
