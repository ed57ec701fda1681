package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func keysAreStoredOnce(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	remember := func(tenant, key, value string, want string, wantFresh bool) {
		t.Helper()
		stored, fresh, err := m.Remember(ctx, tenant, key, value, time.Minute)
		if err != nil || stored != want || fresh != wantFresh {
			t.Errorf("remember %s for %s: got %q, %t, %v, want %q, %t", key, tenant, stored, fresh,
				err, want, wantFresh)
		}
	}
	remember("t1", "k", "v1", "v1", true)
	remember("t1", "k", "v2", "v1", false)
	remember("t2", "k", "v3", "v3", true)
	must(t, m.Forget(ctx, "t1", "k", "v2"))
	remember("t1", "k", "v2", "v1", false) // it had another value
	must(t, m.Forget(ctx, "t1", "k", "v1"))
	must(t, m.Forget(ctx, "t1", "k", "v1"))
	remember("t2", "k", "v4", "v3", false)
	remember("t1", "k", "v5", "v5", true)
	c.advance(time.Minute - time.Millisecond)
	remember("t1", "k", "v6", "v5", false) // doesn't prolong
	c.advance(time.Millisecond)
	remember("t1", "k", "v7", "v7", true)

	var fresh atomic.Int32
	var stored sync.Map
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			value, first, err := m.Remember(ctx, "t1", "raced", fmt.Sprint(i), time.Minute)
			if err != nil {
				t.Errorf("remember: %v", err)
			}
			if first {
				fresh.Add(1)
			}
			stored.Store(value, true)
		})
	}
	running.Wait()
	values := 0
	stored.Range(func(any, any) bool { values++; return true })
	if fresh.Load() != 1 || values != 1 {
		t.Errorf("%d racing requests were fresh and got %d different values, want 1 and 1",
			fresh.Load(), values)
	}
}
