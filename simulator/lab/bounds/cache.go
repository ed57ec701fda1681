package bounds

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

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Cache keeps the results of oracles in a directory, one file for each oracle, scenario and seed,
// because a search can take hours. An entry is used only if both checks pass:
//
//   - The hash of the query is the same: the scenario as it was read, its profile and its trace,
//     the seed, the number of runs, the version of the search and, for oracle G, the policies.
//   - One run of the best setting found gives the same result to the last token. Otherwise engines
//     or policies have changed.
type Cache struct {
	Dir string
	Log io.Writer // takes notes about stale entries; nil: discarded
}

// cacheEntry is the content of a file.
type cacheEntry struct {
	Question string         `json:"question"` // the hash of the query
	Found    oracle.Finding `json:"found"`
}

// get returns the result of an oracle if the cache has a valid one.
func (c *Cache) get(oracleName string, q oracleQuery) (found oracle.Finding, ok bool, err error) {
	if c == nil {
		return found, false, nil
	}
	content, err := os.ReadFile(c.file(oracleName, q))
	if errors.Is(err, fs.ErrNotExist) {
		return found, false, nil
	} else if err != nil {
		return found, false, fmt.Errorf("read cached result of oracle %s: %w", oracleName, err)
	}
	hash, err := q.hash(oracleName)
	if err != nil {
		return found, false, err
	}
	var entry cacheEntry
	// An entry that is cut off, or of another query, is replaced.
	if json.Unmarshal(content, &entry) != nil || entry.Question != hash {
		return found, false, nil //nolint:nilerr // it is replaced
	}
	ok, err = entry.Found.Reproduces(q.setup, q.quiet)
	if err == nil && !ok && c.Log != nil {
		_, err = fmt.Fprintf(c.Log, "%s, seed %d: the cached result of oracle %s is stale: "+
			"a run gives another result now; searching again\n", q.setup.Scenario.Name, q.seed,
			oracleName)
	}
	return entry.Found, ok, err
}

// put writes a result. A crash leaves the old file or the new one.
func (c *Cache) put(oracleName string, q oracleQuery, found oracle.Finding) error {
	if c == nil {
		return nil
	}
	hash, err := q.hash(oracleName)
	if err != nil {
		return err
	}
	content, err := json.Marshal(cacheEntry{hash, found})
	if err != nil {
		return fmt.Errorf("cache result of oracle %s: %w", oracleName, err)
	}
	file := c.file(oracleName, q)
	part := file + ".part"
	if err := errors.Join(os.MkdirAll(c.Dir, 0o777),
		os.WriteFile(part, content, 0o666)); err != nil {
		return fmt.Errorf("cache result of oracle %s: %w", oracleName, err)
	}
	return os.Rename(part, file)
}

func (c *Cache) file(oracleName string, q oracleQuery) string {
	return filepath.Join(c.Dir, fmt.Sprintf("%s-%s.json", runName(q.scenario, q.seed),
		strings.ToLower(oracleName)))
}

// hash identifies a query. The field names are part of the hash.
func (q oracleQuery) hash(oracleName string) (string, error) {
	s := q.setup
	s.Scenario.Goals = scenario.Goals{} // they judge runs and do not change them
	asked := struct {
		Version  int
		Oracle   string
		Runs     int
		Scenario any
		Pools    any
		Files    []string
		Seed     uint64
		Policies []simulator.Policy
	}{Version: oracle.SearchVersion, Oracle: oracleName, Runs: q.runs, Scenario: s.Scenario,
		Pools: []any{s.Profile, s.Profiles}, Files: q.scenario.Hashes, Seed: q.seed}
	if oracleName == "G" {
		asked.Policies = append(asked.Policies, s.Policy)
		for _, run := range q.seen {
			asked.Policies = append(asked.Policies, run.Policy)
		}
	}
	content, err := json.Marshal(asked)
	if err != nil {
		return "", fmt.Errorf("encode query of oracle %s: %w", oracleName, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
