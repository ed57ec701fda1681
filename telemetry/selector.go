package telemetry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
)

// selector selects series by the name of a metric and by conditions on labels, in PromQL syntax.
type selector struct {
	name       string
	conditions []condition
}

// condition is a comparison of a label: name="value", name!="value", name=~"expression" or
// name!~"expression".
type condition struct {
	label, operator, value string
	expression             *regexp.Regexp // for =~ and !~
}

var (
	namePattern      = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	conditionPattern = regexp.MustCompile(
		`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"([^"\\\n]*)"\s*(,|$)`)
)

func isName(s string) bool { return namePattern.MatchString(s) }

// parseSelector parses name{label="value",…}. It refuses values with quotes or backslashes, which
// no engine has.
func parseSelector(text string) (selector, error) {
	name, rest, labelled := strings.Cut(text, "{")
	s := selector{name: strings.TrimSpace(name)}
	if !isName(s.name) {
		return s, fmt.Errorf("%q does not begin with the name of a metric", text)
	}
	if !labelled {
		return s, nil
	}
	inner, closed := strings.CutSuffix(strings.TrimSpace(rest), "}")
	if !closed {
		return s, fmt.Errorf("%q has no closing brace", text)
	}
	for strings.TrimSpace(inner) != "" {
		found := conditionPattern.FindStringSubmatch(inner)
		if found == nil {
			return s, fmt.Errorf(`%q: %q is no list of label="value"`, text, inner)
		}
		c := condition{label: found[1], operator: found[2], value: found[3]}
		if c.operator == "=~" || c.operator == "!~" {
			var err error
			if c.expression, err = regexp.Compile("^(?:" + c.value + ")$"); err != nil {
				return s, fmt.Errorf("%q: %w", text, err)
			}
		}
		s.conditions = append(s.conditions, c)
		inner = inner[len(found[0]):]
	}
	return s, nil
}

// matches reports whether a series has labels that meet the conditions. A missing label is empty,
// as in PromQL.
func (s selector) matches(labels model.Metric) bool {
	for _, c := range s.conditions {
		value := string(labels[model.LabelName(c.label)])
		var holds bool
		if c.expression != nil {
			holds = c.expression.MatchString(value)
		} else {
			holds = value == c.value
		}
		if holds == strings.HasPrefix(c.operator, "!") {
			return false
		}
	}
	return true
}

// query returns the selector in PromQL, with a suffix to the name of the metric and with further
// conditions.
func (s selector) query(suffix string, further ...string) string {
	var conditions []string
	for _, c := range s.conditions {
		conditions = append(conditions, c.label+c.operator+`"`+c.value+`"`)
	}
	return s.name + suffix + "{" + strings.Join(append(conditions, further...), ",") + "}"
}

func (s selector) String() string {
	if len(s.conditions) == 0 {
		return s.name
	}
	return s.query("")
}
