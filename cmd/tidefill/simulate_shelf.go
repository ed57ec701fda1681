package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// shelf keeps what oracles have found in a folder, one file for each oracle, story and seed, so
// that hours of searching need not be done again. Two things keep what is stale from being used.
// Each file says what it is an answer to (the story as it was read, its profile and its trace, the
// seed, the runs, the search's version, for G the policies too) and another question is not
// answered by it. And the best that was found is told once more: if not the same comes of it to the
// last token, engines or policies have changed.
type shelf struct {
	dir    string
	stderr io.Writer
}

// kept is the content of a file.
type kept struct {
	Question string         `json:"question"` // its hash
	Found    oracle.Finding `json:"found"`
}

// find looks for an answer; known says whether there is one that still holds.
func (h *shelf) find(name string, q question) (found oracle.Finding, known bool, err error) {
	if h == nil {
		return found, false, nil
	}
	content, err := os.ReadFile(h.file(name, q))
	if errors.Is(err, fs.ErrNotExist) {
		return found, false, nil
	} else if err != nil {
		return found, false, fmt.Errorf("read what oracle %s found before: %w", name, err)
	}
	hash, err := q.hash(name)
	if err != nil {
		return found, false, err
	}
	var before kept
	// cut off, or of another question: it is found anew
	if json.Unmarshal(content, &before) != nil || before.Question != hash {
		return found, false, nil
	}
	known, err = before.Found.Reproduces(q.setup, q.quiet)
	if err == nil && !known {
		_, err = fmt.Fprintf(h.stderr,
			"%s, seed %d: what oracle %s found before comes out otherwise now; it searches anew\n",
			q.setup.Scenario.Name, q.seed, name)
	}
	return before.Found, known, err
}

// keep writes an answer, whole or not at all.
func (h *shelf) keep(name string, q question, found oracle.Finding) error {
	if h == nil {
		return nil
	}
	hash, err := q.hash(name)
	if err != nil {
		return err
	}
	content, err := json.Marshal(kept{hash, found})
	if err != nil {
		return fmt.Errorf("keep what oracle %s found: %w", name, err)
	}
	file := h.file(name, q)
	draft := file + ".part"
	if err := errors.Join(os.MkdirAll(h.dir, 0o777),
		os.WriteFile(draft, content, 0o666)); err != nil {
		return fmt.Errorf("keep what oracle %s found: %w", name, err)
	}
	return os.Rename(draft, file)
}

func (h *shelf) file(name string, q question) string {
	return filepath.Join(h.dir, fmt.Sprintf("%s-%s.json", q.story.day(q.seed),
		strings.ToLower(name)))
}

// day names a story on a seed, as files are called.
func (s *story) day(seed uint64) string {
	return fmt.Sprintf("%s-seed%d", strings.TrimSuffix(filepath.Base(s.file), ".yaml"), seed)
}

// hash tells questions apart.
func (q question) hash(name string) (string, error) {
	s := q.setup
	s.Scenario.Goals = scenario.Goals{} // say how runs are judged, and change none
	asked := struct {
		Version  int
		Oracle   string
		Runs     int
		Scenario any
		Pools    any
		Files    []string
		Seed     uint64
		Policies []simulator.Policy
	}{Version: oracle.SearchVersion, Oracle: name, Runs: q.runs, Scenario: s.Scenario,
		Pools: []any{s.Profile, s.Profiles}, Files: q.story.read, Seed: q.seed}
	if name == "G" {
		asked.Policies = append(asked.Policies, s.Policy)
		for _, run := range q.seen {
			asked.Policies = append(asked.Policies, run.Policy)
		}
	}
	content, err := json.Marshal(asked)
	if err != nil {
		return "", fmt.Errorf("tell what oracle %s is asked: %w", name, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// settingsOf is what of a configuration file makes a policy: the keys that differ from the
// defaults. nil for no policy.
func settingsOf(p *simulator.Policy) (map[string]any, error) {
	if p == nil {
		return nil, nil
	}
	cfg := config.DefaultSimulation()
	cfg.Scheduler, cfg.FlowControl, cfg.Autoscale = p.Scheduler, p.Flow, p.Scale
	cfg.Dispatch.Retry, cfg.Dispatch.Plan = p.Plan.Retry, p.Plan.Tuning
	cfg.Dispatch.ChunkLines = p.ChunkLines
	tree := func(cfg config.Simulation) (tree map[string]any, err error) {
		text, err := cfg.YAML()
		if err == nil {
			err = yaml.Unmarshal(text, &tree)
		}
		return tree, err
	}
	usual, err := tree(config.DefaultSimulation())
	if err != nil {
		return nil, err
	}
	own, err := tree(cfg)
	if err != nil {
		return nil, err
	}
	return beyond(own, usual), nil
}

// beyond is what of a tree differs from another.
func beyond(own, usual map[string]any) map[string]any {
	differs := map[string]any{}
	for key, value := range own {
		branch, deep := value.(map[string]any)
		other, _ := usual[key].(map[string]any)
		switch {
		case deep:
			if more := beyond(branch, other); len(more) > 0 {
				differs[key] = more
			}
		case fmt.Sprint(value) != fmt.Sprint(usual[key]):
			differs[key] = value
		}
	}
	return differs
}

// writeReplays writes what attains the bounds of G into a folder, one configuration for each story
// and seed, with the command that tells it again.
func (r *race) writeReplays(dir string, bounds func(story, seed int) []oracle.Bound) error {
	for i := range r.stories {
		s := &r.stories[i]
		for n, seed := range r.seeds {
			for _, b := range bounds(i, n) {
				if len(b.Config) == 0 {
					continue
				}
				text, err := yaml.Marshal(b.Config)
				if err != nil {
					return err
				}
				name := filepath.Join(dir, s.day(seed)+"-"+strings.ToLower(b.Name)+".yaml")
				head := fmt.Sprintf(
					"# Oracle %s of %s, seed %d: %.0f useful tokens at %.3f points of loss (%s).\n# tidefill simulate %s --seed %d --config %s\n",
					b.Name, s.Scenario.Name, seed, b.Useful, b.Loss, b.Note, s.file, seed, name)
				if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(
					name, append([]byte(head), text...), 0o666)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
