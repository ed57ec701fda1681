package simulator

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/costmodel"
	fixedpolicy "github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// bundled is a setup of one of the project's scenarios, under the daemon's
// defaults.
func bundled(t testing.TB, name string, edit ...func(*Setup)) Setup {
	t.Helper()
	sc, err := scenario.Read("scenarios/"+name, scenario.Files{
		Read: os.ReadFile,
		Merge: func(file string, content []byte, s *scenario.Scenario) error {
			return config.Read(file, content, s)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Scenario: sc, Seed: 1, Policy: daemon()}
	var known bool
	if s.Profile, known = engine.ProfileNamed(s.Scenario.Pool.Profile); !known {
		t.Fatalf("%s: no profile %q", name, s.Scenario.Pool.Profile)
	}
	for _, f := range edit {
		f(&s)
	}
	return s
}

// streamed lets the policy headroom stream all lines, which shows it the most.
func streamed(s *Setup) {
	own := headroom.DefaultConfig()
	own.Streams = headroom.StreamsAll
	s.Policy.Flow = s.Policy.Flow.Select(headroom.Name, own)
}

func daemon() Policy {
	cfg := config.Default()
	return Policy{Scheduler: cfg.Scheduler, Flow: cfg.FlowControl, Plan: cfg.Dispatch.PlanConfig(),
		ChunkLines: cfg.Dispatch.ChunkLines}
}

// fixed carries a set number of lines per replica, whatever happens.
func fixed(lines int) func(*Setup) {
	return func(s *Setup) {
		s.Policy.Flow = s.Policy.Flow.Select("fixed", fixedpolicy.Config{PerRunner: lines})
	}
}

func horizon(d time.Duration) func(*Setup) {
	return func(s *Setup) { s.Scenario = s.Scenario.Until(d) }
}

func result(t testing.TB, s Setup) Result {
	t.Helper()
	r, err := Run(s, silent)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func silent(float64) error { return nil }

// tiny is one engine whose iterations take 10 ms plus 1 ms per token, without
// noise, and the interactive requests of a CSV trace.
func tiny(t testing.TB, trace string, jobs ...scenario.Job) Setup {
	t.Helper()
	s := Setup{Scenario: scenario.Default(), Policy: daemon(), Profile: engine.Profile{
		Name: "tiny", CostModel: costmodel.Model{C0: 10, C1: 1}, KVTokens: 10_000,
		MaxBatchedTokens: 64,
		MaxSeqs:          8,
	}}
	s.Scenario.Name, s.Scenario.Horizon, s.Scenario.Jobs = "tiny", 5*time.Minute, jobs
	s.Scenario.Pool.Profile, s.Scenario.Pool.Replicas, s.Scenario.Pool.Noise = "tiny", 1, 0
	s.Scenario.Interactive.Trace, s.Scenario.Interactive.Format = "trace.csv", workload.CSV
	read, err := workload.Read("trace.csv", workload.CSV,
		strings.NewReader("t_s,input_tokens,output_tokens\n"+trace))
	if err != nil {
		t.Fatal(err)
	}
	s.Trace = read
	return s
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
