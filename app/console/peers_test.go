package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app/console"
)

// A process shows the pools that it leads, and those that others have published, with their age.
func TestPoolsOfOtherProcesses(t *testing.T) {
	publish := func(node string, names ...string) console.Peer {
		deps := newDeps(names...)
		deps.Node = node
		data, err := console.New(deps).Published()
		if err != nil {
			t.Fatal(err)
		}
		return console.Peer{Node: node, Age: 1500 * time.Millisecond, Data: data}
	}
	deps := newDeps("own")
	peers := []console.Peer{publish("newest", "own", "far"), publish("older", "far", "third"),
		publish("n", "stale"), {Node: "broken", Data: []byte("{")}}
	deps.Peers = func(context.Context) []console.Peer { return peers }
	var list struct {
		Data []struct {
			Name, Node string
			Age        float64 `json:"age_s"`
		}
	}
	answer := serve(t, deps, "/admin/pools")
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list.Data {
		got = append(got, p.Name+" of "+p.Node)
		if want := map[bool]float64{true: 1.5}[p.Node != "n"]; p.Age != want {
			t.Errorf("the report on %s is %v s old, want %v", p.Name, p.Age, want)
		}
	}
	if want := "own of n, far of newest, third of older"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}

	answer = serve(t, deps, "/admin/pools/far/decisions")
	if answer.Code != http.StatusOK || strings.Count(answer.Body.String(), `"time"`) != 1 {
		t.Errorf("decisions of a pool of another process: %d %s", answer.Code, answer.Body)
	}
	if answer = serve(t, deps, "/admin/pools/none/decisions"); answer.Code != http.StatusNotFound {
		t.Errorf("decisions of no pool: %d", answer.Code)
	}
}

// Of a process that has probably ended nothing is shown as if it were so now.
func TestPoolsOfAProcessThatHasEnded(t *testing.T) {
	deps := newDeps("m")
	data, err := console.New(deps).Published()
	if err != nil {
		t.Fatal(err)
	}
	deps = newDeps()
	deps.Node = "other"
	deps.Problems = func() []string { return []string{"no_leader: It hangs."} }
	deps.Peers = func(context.Context) []console.Peer {
		return []console.Peer{{Node: "n", Age: time.Second, Data: data,
			NotLed: "no_leader: It hangs."}}
	}
	var list struct {
		Problems []string
		Data     []struct {
			NotLed   string `json:"not_led"`
			Decision struct {
				Reason  string
				Runners []any
				Time    float64
			}
		}
	}
	answer := serve(t, deps, "/admin/pools")
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if d := list.Data[0]; len(list.Problems) != 1 || d.NotLed != "no_leader: It hangs." ||
		d.Decision.Reason != "no_leader" || len(d.Decision.Runners) != 0 || d.Decision.Time == 0 {
		t.Errorf("got %s", answer.Body)
	}
	answer = serve(t, deps, "/admin/pools/none/decisions")
	if text := answer.Body.String(); !strings.Contains(text, `The pools are: \"m\".`) {
		t.Errorf("the error of an unknown pool: %s", text)
	}
	deps.Peers = newDeps().Peers
	answer = serve(t, deps, "/admin/pools/none/decisions")
	if text := answer.Body.String(); !strings.Contains(text, "No pool is known. no_leader: It") {
		t.Errorf("the error of an unknown pool without any: %s", text)
	}
}
