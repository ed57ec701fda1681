package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/suggest"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Change is another value of a scenario's key.
type Change struct {
	// Key is the path of a key of the scenario, such as pool.replicas or jobs.night.lines. An
	// element of a list is named by its name or its number. A key of pool or interactive may stand
	// alone.
	Key string
	// Value is in YAML's syntax, or relative to the scenario's: +2, -1 or 1.5x.
	Value string
}

// ParseChanges reads texts of KEY=VALUE, each with one or more separated by commas.
func ParseChanges(texts []string) ([]Change, error) {
	var all []Change
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			key, value, ok := strings.Cut(part, "=")
			switch {
			case ok && strings.TrimSpace(key) != "" && value != "":
				all = append(all, Change{strings.TrimSpace(key), value})
			case len(all) > 0 && !ok: // a comma within a value, such as a list
				all[len(all)-1].Value += "," + part
			default:
				return nil, RequestErrorf("--what-if %s: write KEY=VALUE with a key of the "+
					"scenario, such as pool.replicas=5, replicas=-1 or interactive.rate=1.2x", text)
			}
		}
	}
	return all, nil
}

// Changed is a scenario with changes.
type Changed struct {
	Scenario
	// Applied says of each change its key, what the scenario has, and what it has now.
	Applied []Applied
}

// Applied is a change of a scenario.
type Applied struct {
	Key  string `json:"key"`
	From string `json:"from"`
	To   string `json:"to"`
}

func (a Applied) String() string {
	if a.From == "" {
		return a.Key + " " + a.To
	}
	return fmt.Sprintf("%s %s instead of %s", a.Key, a.To, a.From)
}

// Changed returns the scenario with changes, and reads the files that they name.
func (s Scenario) Changed(changes []Change) (Changed, error) {
	c := Changed{Scenario: s}
	for _, change := range changes {
		applied, err := c.apply(change)
		if err != nil {
			return Changed{}, &RequestError{fmt.Errorf("--what-if %s=%s: %w", change.Key,
				change.Value, err)}
		}
		c.Applied = append(c.Applied, applied)
	}
	c.Profiles = nil
	was, is := s.Scenario, c.Scenario.Scenario
	for _, part := range []struct {
		changed bool
		key     string
		read    func() error
	}{
		{was.Pool.Profile != is.Pool.Profile, "pool.profile", c.readProfile},
		{len(is.BatchPools) > 0, "batch_pools", c.readProfiles},
		{was.Interactive.Trace != is.Interactive.Trace ||
			was.Interactive.Format != is.Interactive.Format, "interactive.trace", c.readTrace},
		{was.Interactive.Shape != is.Interactive.Shape ||
			was.Interactive.ShapeColumn != is.Interactive.ShapeColumn, "interactive.shape",
			c.readShape},
	} {
		if part.changed {
			if err := part.read(); err != nil {
				return Changed{}, fmt.Errorf("--what-if: %s: %w", part.key, err)
			}
		}
	}
	if err := c.Check(); err != nil {
		return Changed{}, &RequestError{fmt.Errorf("--what-if: %w", err)}
	}
	return c, nil
}

// apply makes one change.
func (c *Changed) apply(change Change) (Applied, error) {
	from, err := c.find(change.Key)
	if err != nil {
		return Applied{}, err
	}
	value := change.Value
	if from.node != nil {
		c.resolveRate(from)
		if value, err = relative(from.node, change.Value); err != nil {
			return Applied{}, err
		}
	}
	err = c.set(from, value)
	if n, isNumber := strconv.ParseFloat(value, 64); err != nil && isNumber == nil &&
		value != change.Value && n != math.Round(n) { // relative, of an integer
		value = strconv.FormatFloat(math.Round(n), 'f', 0, 64)
		err = c.set(from, value)
	}
	if err != nil {
		return Applied{}, err
	}
	applied := Applied{Key: from.path, To: value}
	if to, err := c.find(from.path); err == nil && from.node != nil {
		applied.From, applied.To = shownValue(from.node), shownValue(to.node)
	}
	return applied, nil
}

// set gives the key at a place a value.
func (c *Changed) set(at place, value string) error {
	setting := config.Setting{Origin: "--what-if " + at.path, Path: at.path, Value: value}
	if at.list != nil { // the whole list is set
		var element yaml.Node
		if err := yaml.Unmarshal([]byte(value), &element); err != nil || len(
			element.Content) == 0 {
			return fmt.Errorf("%q is no value", value)
		}
		was := *at.node
		*at.node = *element.Content[0]
		content, err := yaml.Marshal(at.list)
		*at.node = was
		if err != nil {
			return err
		}
		setting.Path, setting.Value = at.listPath, string(content)
	}
	changed := checked{Scenario: c.Scenario.Scenario}
	if err := config.Read("", nil, &changed, setting); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), setting.Origin+": "))
	}
	c.Scenario.Scenario = changed.Scenario
	return nil
}

// resolveRate sets the rate that 0 stands for: that of the generator.
func (c *Changed) resolveRate(rate place) {
	in := c.Scenario.Scenario.Interactive
	if rate.path != "interactive.rate" || in.Rate != 0 {
		return
	}
	if population, err := workload.LookupPopulation(in.Generator); err == nil {
		rate.node.Value, rate.node.Tag = fmt.Sprint(population.Rate), "!!float"
	}
}

// place is that of a value in a scenario.
type place struct {
	path string
	node *yaml.Node // nil: there is none of this path
	// list is the outermost list around the value; nil: there is none.
	list     *yaml.Node
	listPath string
}

// find returns the place of a key of the scenario, of its pool, or of its interactive traffic.
func (c *Changed) find(key string) (place, error) {
	text, err := yaml.Marshal(c.Scenario.Scenario)
	if err != nil {
		return place{}, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return place{}, err
	}
	for _, section := range []string{"", "pool.", "interactive."} {
		found, err := findIn(document.Content[0], section+key)
		if err != nil || found.node != nil {
			return found, err
		}
	}
	return place{path: key}, nil
}

func findIn(root *yaml.Node, path string) (place, error) {
	p := place{path: path}
	at := root
	walked := ""
	for _, key := range strings.FieldsFunc(path, func(r rune) bool {
		return r == '.' || r == '[' || r == ']'
	}) {
		var next *yaml.Node
		switch at.Kind {
		case yaml.MappingNode:
			next = valueOf(at, key)
		case yaml.SequenceNode:
			if p.list == nil {
				p.list, p.listPath = at, walked
			}
			var err error
			if next, err = elementOf(at, walked, key); err != nil {
				return place{}, err
			}
		default: // a value has no keys
		}
		if next == nil {
			if p.list != nil {
				return place{}, unknownKey(at, walked, key)
			}
			return place{path: path}, nil
		}
		at, walked = next, strings.TrimPrefix(walked+"."+key, ".")
	}
	p.node = at
	return p, nil
}

func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// unknownKey is the error of a key that a section within a list does not have.
func unknownKey(section *yaml.Node, path, key string) error {
	var known []string
	for i := 0; i+1 < len(section.Content); i += 2 {
		known = append(known, section.Content[i].Value)
	}
	if near := suggest.Nearest(key, known); near != "" {
		return fmt.Errorf("unknown key %s.%s; did you mean %s.%s?", path, key, path, near)
	}
	slices.Sort(known)
	return fmt.Errorf("unknown key %s.%s; %s has the keys %s", path, key, path,
		strings.Join(known, ", "))
}

// elementOf returns the element of a list with this name or number.
func elementOf(list *yaml.Node, path, key string) (*yaml.Node, error) {
	var names []string
	for _, element := range list.Content {
		if name := valueOf(element, "name"); name != nil {
			if name.Value == key {
				return element, nil
			}
			names = append(names, name.Value)
		}
	}
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(list.Content) {
		return list.Content[i], nil
	}
	has := fmt.Sprintf("it has %d elements, from 0 on", len(list.Content))
	if len(list.Content) == 0 {
		has = "it is empty"
	}
	if len(names) > 0 {
		has += ": " + strings.Join(names, ", ")
	}
	if near := suggest.Nearest(key, names); near != "" {
		has = "did you mean " + path + "." + near + "?"
	}
	return nil, fmt.Errorf("%s has no element %q; %s", path, key, has)
}

// relative returns the value that a text stands for, if it is relative to that of a node.
func relative(node *yaml.Node, text string) (string, error) {
	text = strings.TrimSpace(text)
	number, times := strings.CutSuffix(text, "x")
	factor, notNumber := strconv.ParseFloat(number, 64)
	times = times && notNumber == nil
	if !times && !strings.HasPrefix(text, "+") && !strings.HasPrefix(text, "-") {
		return text, nil
	}
	if d, err := time.ParseDuration(node.Value); err == nil && node.Tag == "!!str" {
		if times {
			d = time.Duration(float64(d) * factor)
		} else {
			more, err := config.ParseDuration(text)
			if err != nil {
				return "", err
			}
			d += more
		}
		return config.FormatDuration(d), nil
	}
	now, err := strconv.ParseFloat(node.Value, 64)
	if err != nil {
		return "", fmt.Errorf("it is %q, so %s of it is nothing; write a value", node.Value, text)
	}
	if times && now == 0 {
		return "", fmt.Errorf("it is 0, so %s of it is nothing; write a value", text)
	}
	switch {
	case times:
		now *= factor
	case notNumber != nil:
		return "", fmt.Errorf("%q is no number", text)
	default:
		now += factor
	}
	return strconv.FormatFloat(now, 'g', 6, 64), nil
}

// shownValue returns a value as a scenario has it.
func shownValue(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		text, err := yaml.Marshal(n)
		if err != nil {
			return err.Error()
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
	if d, err := time.ParseDuration(n.Value); err == nil && n.Tag == "!!str" {
		return config.FormatDuration(d)
	}
	return cmp.Or(n.Value, "nothing")
}
