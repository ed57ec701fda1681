package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/scheduler/flows"
	"github.com/tidefill/tidefill/store"
)

func request() plan.Request {
	return plan.Request{Model: "m", Flow: flows.Flow{Class: flows.Critical, UseCase: "m",
		Tenant: "default"}}
}

// Interactive requests get places on the runners that lines use, one waits for the other's place,
// and a user who goes leaves nothing behind.
func TestRequestsGetPlaces(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	d, stop := w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) {
		c.Inline.Enabled, c.Inline.MaxRunning = true, 1
	}, up.URL)
	var first *dispatch.Place
	awaitThat(t, "the runner serves the model", func() bool {
		place, err := d.Admit(t.Context(), request())
		if refused := (*dispatch.Refused)(nil); errors.As(err, &refused) {
			return false
		}
		first = place
		return err == nil
	})
	if first.Base().String() != up.URL {
		t.Errorf("the request goes to %s, want %s", first.Base(), up.URL)
	}
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := d.Admit(leaving, request())
		left <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the user who left got %v", err)
	}
	second := make(chan *dispatch.Place)
	go func() {
		place, err := d.Admit(t.Context(), request())
		if err != nil {
			t.Error(err)
		}
		second <- place
	}()
	first.Decoded(3, 2, 1000)
	first.Done(plan.RequestEnded{Outcome: plan.Succeeded, Status: 200, PromptTokens: 7,
		CachedTokens: 2, OutputTokens: 3, ReasoningTokens: 1})
	first.Done(plan.RequestEnded{Status: 200}) // has no effect
	place := <-second
	place.Done(plan.RequestEnded{Outcome: plan.Died, Status: 200})
	// Batches go on beside them.
	id := w.submit(chatLines(10, "m"), nil)
	if b := w.awaitEnd(id); b.Counts.Completed != 10 {
		t.Errorf("the batch ended with %+v", b.Counts)
	}
	stop()
	want := store.Used{Tenant: "default", Model: "m", Class: flows.Critical, Requests: 2,
		Failed: 1, Tokens: batchfile.Usage{InputTokens: 7, OutputTokens: 3, TotalTokens: 10,
			CachedTokens: 2, ReasoningTokens: 1}}
	var got store.Used
	for _, u := range w.used() {
		if u.Class != store.BatchClass { // in two hours, if one has just begun
			got.Tenant, got.Model, got.Class = u.Tenant, u.Model, u.Class
			got.Requests, got.Failed = got.Requests+u.Requests, got.Failed+u.Failed
			got.Tokens.Add(u.Tokens)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage in the ledger: -want +got\n%s", diff)
	}
}

// A user who goes at the instant of an admission holds no place.
func TestPlacesOfUsersWhoGoAreFree(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	d, _ := w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) {
		c.Inline.Enabled, c.Inline.MaxRunning = true, 2
	}, up.URL)
	done := make(chan struct{})
	for i := range 200 {
		go func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithCancelCause(t.Context())
			go cancel(fmt.Errorf("user %d is gone", i))
			if place, err := d.Admit(ctx, request()); err == nil {
				place.Done(plan.RequestEnded{Outcome: plan.Succeeded})
			}
		}()
	}
	for range 200 {
		<-done
	}
	awaitThat(t, "both places are free", func() bool {
		a, err := d.Admit(t.Context(), request())
		if err != nil {
			return false
		}
		b, err := d.Admit(t.Context(), request())
		if err != nil {
			t.Error(err)
			return false
		}
		a.Done(plan.RequestEnded{Outcome: plan.Succeeded})
		b.Done(plan.RequestEnded{Outcome: plan.Succeeded})
		return true
	})
}
