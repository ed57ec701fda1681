package console_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

func TestScalingIsShownWithItsReason(t *testing.T) {
	deps := newDeps("m")
	deps.Scaling = func() (*autoscale.Snapshot, error) {
		return &autoscale.Snapshot{At: began.Add(-3 * time.Second),
			Pools: []autoscale.PoolSnapshot{{
				Wanted: autoscale.Wanted{Pool: "night", Replicas: 2, Reported: 3,
					Reason: autoscale.ReasonDeadline, Terms: autoscale.Terms{Deadline: 2,
						ColdStart: 3 * time.Minute, Binding: began.Add(time.Hour)}},
				Max: 8, Starting: 1, Ready: 1, Draining: 1, InFlight: 7, Lines: 90,
			}}}, nil
	}
	answer := serve(t, deps, "/admin/scaling")
	var got struct {
		Decided float64
		Unknown *string
		Data    []map[string]any
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Decided != float64(began.Unix()-3) || got.Unknown != nil || len(got.Data) != 1 {
		t.Fatalf("got %s", answer.Body)
	}
	pool := got.Data[0]
	terms, _ := pool["terms"].(map[string]any)
	if pool["name"] != "night" || pool["wanted"] != 2.0 || pool["reported"] != 3.0 ||
		pool["sentence"] != "With fewer a deadline would be missed." || pool["active"] != true ||
		terms["cold_start_seconds"] != 180.0 || terms["latest_start"] != nil ||
		terms["binding_deadline"] != float64(began.Unix()+3600) {
		t.Errorf("got %s", answer.Body)
	}
}

// A number that is made up would be read as one that was decided.
func TestScalingIsUnknownBeforeTheFirstDecision(t *testing.T) {
	deps := newDeps("m")
	deps.Scaling = func() (*autoscale.Snapshot, error) { return nil, errors.New("not loaded") }
	body := serve(t, deps, "/admin/scaling").Body.String()
	if !strings.Contains(body, `"decided":null,"age_s":null,"unknown":"not loaded","data":[]`) {
		t.Errorf("got %s", body)
	}
}
