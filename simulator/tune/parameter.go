package tune

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/search"
)

// Parameter is a configuration key that a Tuning searches, with its range.
type Parameter struct {
	search.Dimension
	Key  string
	kind valueKind
}

// valueKind says how a value is written in the configuration.
type valueKind uint8

const (
	decimal valueKind = iota
	integer
	duration // the value counts seconds
)

// ParseParameter reads KEY=LOW:HIGH or KEY=LOW:HIGH:log. Values stay integers if both bounds are;
// durations have units.
func ParseParameter(text string) (Parameter, error) {
	key, span, ok := strings.Cut(text, "=")
	bounds := strings.Split(span, ":")
	p := Parameter{Key: strings.TrimSpace(key)}
	if len(bounds) == 3 && bounds[2] == "log" {
		p.Log = true
		bounds = bounds[:2]
	}
	if !ok || len(bounds) != 2 {
		return Parameter{}, errors.New("write KEY=LOW:HIGH, or KEY=LOW:HIGH:log")
	}
	var kinds [2]valueKind
	var err error
	if p.Low, kinds[0], err = parseValue(bounds[0]); err != nil {
		return Parameter{}, err
	}
	if p.High, kinds[1], err = parseValue(bounds[1]); err != nil {
		return Parameter{}, err
	}
	if (kinds[0] == duration) != (kinds[1] == duration) {
		return Parameter{}, errors.New("one bound is a duration and the other is not")
	}
	p.kind = min(kinds[0], kinds[1])
	if !(p.High > p.Low) || p.Log && !(p.Low > 0) {
		return Parameter{}, errors.New("the range must go up, and from above 0 if it is " +
			"logarithmic")
	}
	return p, nil
}

func parseValue(text string) (float64, valueKind, error) {
	if n, err := strconv.Atoi(text); err == nil {
		return float64(n), integer, nil
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, decimal, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is neither a number nor a duration", text)
	}
	return d.Seconds(), duration, nil
}

// check reports a parameter that the configuration does not accept at both ends of its range.
func (p Parameter) check(c compare.Configuration) error {
	for _, v := range []float64{p.Low, p.High} {
		if _, err := c.Load(p.Key + "=" + p.text(v)); err != nil {
			return err
		}
	}
	_, err := p.current(c)
	return err
}

// current returns the value that the configuration has.
func (p Parameter) current(c compare.Configuration) (float64, error) {
	cfg, err := c.Load()
	if err != nil {
		return 0, err
	}
	text, err := cfg.YAML()
	if err != nil {
		return 0, err
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return 0, err
	}
	for part := range strings.SplitSeq(p.Key, ".") {
		section, _ := value.(map[string]any)
		value = section[part]
	}
	v, _, err := parseValue(fmt.Sprint(value))
	if err != nil {
		return 0, fmt.Errorf("%s is %v: %w", p.Key, value, err)
	}
	return v, nil
}

// text returns a value as the configuration takes it, with three digits: a search has no higher
// precision.
func (p Parameter) text(v float64) string {
	switch p.kind {
	case integer:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case duration:
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
		return config.FormatDuration(time.Duration(rounded * float64(time.Second)))
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}
