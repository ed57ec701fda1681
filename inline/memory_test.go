package inline

import "testing"

// A tenant that holds all that it may leaves memory to others.
func TestTenantsShareMemory(t *testing.T) {
	m := &memory{}
	m.limit.Store(8 * holdBytes)
	greedy, other := share{m, "greedy"}, share{m, "other"}
	other.give(0) // of a body that was refused before any of it was read
	held := 0
	for greedy.take(holdBytes) {
		held++
	}
	if held != 4 || !other.take(4*holdBytes) || other.take(1) {
		t.Errorf("one tenant held %d of 8, or another got no more than half", held)
	}
	greedy.give(int64(held) * holdBytes)
	other.give(4 * holdBytes)
	if m.used.Load() != 0 || len(m.by) != 0 {
		t.Errorf("%d bytes of %d tenants are left", m.used.Load(), len(m.by))
	}
}
