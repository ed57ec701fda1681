package app

import "testing"

func TestErrorsAreOneLine(t *testing.T) {
	got := oneLine("ping PostgreSQL: failed to connect to `user=u database=d`:\n\t127.0.0.1:1 " +
		"(127.0.0.1): dial error\n\t127.0.0.1:1 (127.0.0.1): dial error\n\t[::1]:1 (::1): refused")
	const want = "ping PostgreSQL: failed to connect to `user=u database=d`: 127.0.0.1:1 " +
		"(127.0.0.1): dial error; [::1]:1 (::1): refused"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
