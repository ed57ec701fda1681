package profile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
)

func fitted() File {
	r := fit.Result{
		Coefficients: []fit.Coefficient{
			{Name: "c0", Value: 15.123456789, Origin: fit.FromData, Error: 0.1, Low: 15,
				High: 15.2},
			{Name: "c1", Value: 0.0588606449, Origin: fit.FromData},
			{Name: "c2", Value: -0.0588606449, Origin: fit.FromData},
			{Name: "n0", Value: 36, Origin: fit.FromData},
			{Name: "kv", Value: 4.9e-5, Origin: fit.FromPrior},
			{Name: "p1", Origin: fit.FromZero}, {Name: "p2", Origin: fit.FromZero},
		},
		Noise: 0.0123, Requests: [2]int{1, 128}, Error: fit.Error{Points: 1000, Mean: 0.02},
		Warnings: []string{"p1 can't be determined: more data"},
	}
	held := []fit.HeldOut{{Split: "halves", Error: fit.Error{Points: 500, Mean: 0.03}},
		{Split: "minutes", Fault: "too short"}}
	return Of("pool", r, fit.Observations{Runs: 2, MaxSeqs: 128, MaxBatch: 2048, KVTokens: 501_696},
		held, engine.Profile{}, 1,
		[]Source{{"steps.csv", "abc"}})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	files := []File{fitted()}
	for _, p := range engine.Profiles() {
		files = append(files, Bundled(p))
	}
	for _, want := range files {
		text, err := want.YAML()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read("p.yaml", bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", want.Name, diff)
		}
	}
	for _, want := range engine.Profiles() {
		if got, err := Bundled(want).Profile(); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestAFittedProfileRunsAnEngine(t *testing.T) {
	p, err := fitted().Profile()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(engine.DefaultConfig(p), nil); err != nil {
		t.Error(err)
	}
	if want := (costmodel.Model{C0: 15.1235, C1: 0.0588606, C2: -0.0588606, N0: 36,
		KV: 4.9e-5}); p.CostModel != want || p.MaxSeqs != 128 || !p.Measured {
		t.Errorf("profile %+v, want the cost model %+v", p, want)
	}
}

func TestReadReportsFaults(t *testing.T) {
	text, err := fitted().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, old, new, want string }{
		{"empty", string(text), "", "p.yaml: empty"},
		{"unknown key", "measured:", "mesured:", "field mesured not found"},
		{"another version", "version: 1", "version: 2", "version is 2, want 1"},
		{"no name", "name: pool", "name: ''", "name is missing"},
		{"a coefficient twice", "name: c1", "name: c0", "cost_model: c0 occurs twice"},
		{"a coefficient missing", "name: kv", "name: kw", "cost_model: kv is missing"},
		{"half a knee", "value: 36", "value: 36.5", "n0 must be a whole number"},
		{"negative", "value: 15.1235", "value: -3", "profile.cost_model.c0: is -3"},
		{"falling", "value: -0.0588606", "value: -0.06",
			"profile.cost_model.c2: is -0.06, must be"},
		{"no slots", "max_seqs: 128", "max_seqs: 0", "profile.max_seqs is 0"},
		{"a negative cache", "kv_tokens: 501696", "kv_tokens: -1", "kv_tokens is -1"},
		{"noise", "noise: 0.0123", "noise: -1", "noise is -1"},
		{"no yaml", "version: 1", "version: [", "p.yaml: yaml:"},
	} {
		if !strings.Contains(string(text), test.old) {
			t.Fatalf("%s: %q is not in\n%s", test.name, test.old, text)
		}
		_, err := Read("p.yaml", strings.NewReader(strings.Replace(string(text), test.old, test.new,
			1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want %q", test.name, err, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, err := fitted().YAML()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Read("p.yaml", bytes.NewReader(content))
		if err != nil {
			return
		}
		p, err := file.Profile()
		if err != nil {
			t.Fatalf("read, yet %v", err)
		}
		p.KVTokens = max(p.KVTokens, engine.BlockSize)
		if _, err := engine.New(engine.DefaultConfig(p), nil); err != nil {
			t.Fatalf("read, yet %v", err)
		}
	})
}
