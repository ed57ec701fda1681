package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/store"
)

// A batch is shown with what happened to it, in order.
func TestABatchIsShown(t *testing.T) {
	deps := newDeps()
	deps.Details = func(_ context.Context, id string) (api.BatchDetails, error) {
		return api.BatchDetails{
			BatchSummary: api.BatchSummary{ID: id, Tenant: "t", State: store.Expired,
				Faults: []api.FaultCount{{Code: "c", Count: 2, Line: 1, Message: "w"}}},
			Batch: store.Batch{State: store.Expired, Window: "1h", CreatedAt: began,
				ExpiredAt: began.Add(time.Hour), InProgressAt: began.Add(3 * time.Second),
				Changes: []store.Change{
					{At: began.Add(time.Second), What: "paused", By: "sha256:1"},
					{At: began.Add(2 * time.Second), What: "resumed"}}},
		}, nil
	}
	body := serve(t, deps, "/admin/batches/b1").Body.String()
	const want = `"history":[{"at":1800000000,"what":"created","by":""},` +
		`{"at":1800000001,"what":"paused","by":"sha256:1"},` +
		`{"at":1800000002,"what":"resumed","by":""},` +
		`{"at":1800000003,"what":"input checked, lines may start","by":""},` +
		`{"at":1800003600,"what":"expired","by":""}]`
	const fault = `"faults":[{"code":"c","count":2,"line":1,"message":"w"}]`
	for _, part := range []string{want, fault, `"id":"b1","tenant":"t"`} {
		if !strings.Contains(body, part) {
			t.Errorf("got %s, want %s in it", body, part)
		}
	}
}

func TestUnknownBatchesAndPositionsAreRefused(t *testing.T) {
	for path, want := range map[string]int{"/admin/batches/b": 404,
		"/admin/batches/b/lines": 400, "/admin/batches/b/lines?limit=0": 400} {
		w := serve(t, newDeps(), path)
		if got := decode[refusal](t, w).Error; w.Code != want || got.Message == "" {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
}

// Without keys the API serves its own machine, unless it is open to others. The console, whose
// address may be reached from elsewhere, gives no more.
func TestTheConsoleGivesNoMoreThanTheAPI(t *testing.T) {
	const here, there = "127.0.0.1:1", "10.0.0.1:1"
	for _, test := range []struct {
		from           string
		needsKey, open bool
		none           bool
		want           int
	}{
		{from: here, want: 200}, {from: "[::1]:1", want: 200}, {from: there, want: 403},
		{from: there, open: true, want: 200}, {from: there, needsKey: true, want: 200},
		{from: here, needsKey: true, none: true, want: 403}, {from: "@", want: 403},
	} {
		deps := newDeps()
		deps.NeedsKey = func() bool { return test.needsKey }
		deps.Open = func() bool { return test.open }
		if path := ""; !test.none {
			deps.API = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if path = r.URL.Path; path != "/v1/batches/b/pause" {
					t.Errorf("the API got %s", path)
				}
			})
		}
		mux, w := http.NewServeMux(), httptest.NewRecorder()
		console.New(deps).Register(mux)
		r := httptest.NewRequest(http.MethodPost, "/console/api/v1/batches/b/pause", nil)
		r.RemoteAddr = test.from
		mux.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%+v: status %d, %s", test, w.Code, w.Body)
		}
	}
}
