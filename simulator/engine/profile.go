package engine

import (
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

// Profile is a model on a kind of GPU: its cost model, and the limits of the engine that usually
// serves it.
type Profile struct {
	Name      string
	CostModel costmodel.Model
	// Measured says that the cost model was fitted to iterations of a real server. Otherwise it was
	// composed from timings of single operators.
	Measured bool
	// KVTokens is the capacity of the KV cache at 90 % memory utilization.
	KVTokens int
	// MaxBatchedTokens is the token budget of an iteration. On A100 it is 512 for 70B models, so
	// that an iteration with a full prefill chunk takes about 125 ms.
	MaxBatchedTokens int
	// MaxSeqs is the number of requests that may run at once.
	MaxSeqs int
}

// The profiles by operators use Vidur's published timings. The H100 row is fitted to 1,251
// iterations of a vLLM 0.15 server, with a mean error below 3 %.
var profiles = []Profile{
	{
		Name: "llama-70b-a100",
		CostModel: costmodel.Model{C0: 33.0, C1: 0.1120, C2: 0.0714, N0: 112, KV: 5.25e-5,
			P1: 0.0052,
			P2: 5.14e-6},
		KVTokens: 440_000, MaxBatchedTokens: 512, MaxSeqs: 256,
	},
	{
		Name: "llama3-70b-a100",
		CostModel: costmodel.Model{C0: 33.1, C1: 0.1114, C2: 0.0743, N0: 112, KV: 5.25e-5,
			P1: 0.0052,
			P2: 5.14e-6},
		KVTokens: 440_000, MaxBatchedTokens: 512, MaxSeqs: 256,
	},
	{
		Name: "llama-70b-a100-tp2", // little KV capacity, on purpose
		CostModel: costmodel.Model{C0: 56.8, C1: 0.0878, C2: 0.2364, N0: 80, KV: 1.05e-4,
			P1: 0.0104,
			P2: 1.03e-5},
		KVTokens: 15_000, MaxBatchedTokens: 512, MaxSeqs: 256,
	},
	{
		Name: "llama-70b-h100",
		CostModel: costmodel.Model{C0: 16.1, C1: 0.020, C2: 0.035, N0: 120, KV: 4.9e-5, P1: 0.005,
			P2: 1.0e-6},
		Measured: true,
		KVTokens: 500_000, MaxBatchedTokens: 2048, MaxSeqs: 128,
	},
	{
		Name: "llama-8b-a100",
		CostModel: costmodel.Model{C0: 12.3, C1: 0.0314, C2: 0.0363, N0: 128, KV: 8.4e-5,
			P1: 0.0083,
			P2: 8.23e-6},
		KVTokens: 400_000, MaxBatchedTokens: 2048, MaxSeqs: 256,
	},
	{
		// Every head has its own keys and values, so the context dominates the time of iterations.
		// Decoding follows published fits to a real server. Prefill is computed from its
		// arithmetic, not measured.
		Name:      "llama-7b-h100",
		CostModel: costmodel.Model{C0: 6.0, KV: 1.95e-4, P1: 0.028, P2: 1.0e-6},
		KVTokens:  110_000, MaxBatchedTokens: 2048, MaxSeqs: 256,
	},
}

// Origin is the model and the GPUs that a profile is of.
type Origin struct{ Model, GPUs string }

var origins = map[string]Origin{
	"llama-70b-a100":     {"Llama-2-70B", "4 A100"},
	"llama3-70b-a100":    {"Llama-3-70B", "4 A100"},
	"llama-70b-a100-tp2": {"Llama-2-70B", "2 A100"},
	"llama-70b-h100":     {"Llama-2-70B", "4 H100"},
	"llama-8b-a100":      {"Llama-3-8B", "1 A100"},
	"llama-7b-h100":      {"Llama-2-7B", "1 H100"},
}

// OriginOf returns what the built-in profile of a name is of.
func OriginOf(name string) Origin { return origins[name] }

// Throughput returns the tokens of answers per second of a full engine that computes such lines
// alone: as many as its sequences, its KV cache and the token budget of its iterations allow.
func (p Profile) Throughput(of costmodel.Mix) float64 {
	lines := min(float64(p.MaxSeqs), float64(p.KVTokens)/of.MeanContext(),
		float64(p.MaxBatchedTokens)/(1+of.Prompt/of.Output))
	return 1000 * lines / p.CostModel.MeanIteration(costmodel.Load{}, of, lines)
}

// Profiles returns the built-in profiles.
func Profiles() []Profile { return slices.Clone(profiles) }

// ProfileNamed returns the built-in profile of a name.
func ProfileNamed(name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
}
