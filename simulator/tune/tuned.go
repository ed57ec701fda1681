package tune

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/search"
)

// Tuned is the result of a Tuning.
type Tuned struct {
	tuning              *Tuning
	best                search.Result
	after               map[runKey]simulator.Result
	searched, confirmed change // of the objective, on the seeds of the search and on the others
	policy              string // the flow-control policy
}

// change is a value with the unchanged configuration and with the best point.
type change struct{ before, after float64 }

func (c change) better() bool { return c.after > c.before }

// Better reports whether the best point is better on the seeds of the search and on the others.
func (t Tuned) Better() bool { return t.searched.better() && t.confirmed.better() }

// Write writes the evidence as comments and, if the result is better, the changed keys as a
// configuration file.
func (t Tuned) Write(out io.Writer) error {
	evidence, err := t.evidence()
	if err != nil {
		return err
	}
	for row := range strings.Lines(evidence) {
		if _, err := fmt.Fprintln(out, strings.TrimRight("# "+row, " \n")); err != nil {
			return err
		}
	}
	if !t.Better() {
		return nil
	}
	text, err := t.patch()
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

func (t Tuned) evidence() (string, error) {
	var text bytes.Buffer
	for _, sentence := range t.verdict() {
		fmt.Fprintln(&text, sentence)
	}
	fmt.Fprintf(&text, "\nobjective before and after: %.4f and %.4f on seeds %s, which were "+
		"searched; %.4f and %.4f on seeds %s, which were not\n",
		t.searched.before, t.searched.after, seedList(t.tuning.SearchSeeds),
		t.confirmed.before, t.confirmed.after, seedList(t.tuning.ConfirmSeeds))
	fmt.Fprintf(&text, "%s of all scenarios\n\n", humanize.Count(t.best.Spent, "trial"))
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tSEED\tHARVEST, M\tAFTER\tLOSS, POINTS\tAFTER\tDEADLINES\tAFTER\t"+
		"GPU HOURS\tAFTER")
	for i, s := range t.tuning.Scenarios {
		for _, seed := range t.tuning.seeds() {
			key := runKey{i, seed}
			a, b := t.tuning.before[key], t.after[key]
			note := ""
			if slices.Contains(t.tuning.ConfirmSeeds, seed) {
				note = " (held back)"
			}
			fmt.Fprintf(w, "%s\t%d%s\t%.2f\t%.2f\t%.2f\t%.2f\t%d/%d\t%d/%d\t%.1f\t%.1f\n",
				s.Scenario.Name, seed, note,
				float64(a.Batch.Useful)/1e6, float64(b.Batch.Useful)/1e6, a.Loss, b.Loss,
				a.Batch.Met, a.Batch.Deadlines, b.Batch.Met, b.Batch.Deadlines, a.GPUHours,
				b.GPUHours)
		}
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	err := t.tuning.writeTrials(&text)
	return text.String(), err
}

// patch returns the parameters with their best values as a configuration file.
func (t Tuned) patch() ([]byte, error) {
	root := map[string]any{}
	for i, p := range t.tuning.Parameters {
		at := root
		path := strings.Split(p.Key, ".")
		for _, section := range path[:len(path)-1] {
			inner, exists := at[section].(map[string]any)
			if !exists {
				inner = map[string]any{}
				at[section] = inner
			}
			at = inner
		}
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(p.text(t.best.Point[i])), &node); err != nil {
			return nil, err
		}
		at[path[len(path)-1]] = node.Content[0]
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := encoder.Encode(root)
	return b.Bytes(), err
}

func seedList(seeds []uint64) string {
	var parts []string
	for _, s := range seeds {
		parts = append(parts, strconv.FormatUint(s, 10))
	}
	return strings.Join(parts, ", ")
}
