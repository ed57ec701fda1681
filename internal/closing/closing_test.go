package closing

import (
	"errors"
	"strings"
	"testing"
)

func TestEverythingIsClosedInReverseOrder(t *testing.T) {
	var l List
	var closed []string
	for _, name := range []string{"a", "b", "c"} {
		l.Add(name, func() error {
			closed = append(closed, name)
			if name == "b" {
				return errors.New("is stuck")
			}
			return nil
		})
	}
	if err := l.Close(); err == nil || err.Error() != "close b: is stuck" {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(closed, ""); got != "cba" {
		t.Errorf("closed in the order %s", got)
	}
	if err := l.Close(); err != nil || len(closed) != 3 {
		t.Errorf("the second call: %v, closed %v", err, closed)
	}
}
