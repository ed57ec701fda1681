package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/store"
)

type ledElsewhere struct{ error }

func (ledElsewhere) Leader() string { return "other-node" }

func TestForgetAnswers(t *testing.T) {
	for want, test := range map[string]struct {
		err    error
		status int
	}{
		"":                    {nil, http.StatusNoContent},
		`"pool_not_found"`:    {fmt.Errorf("pool: %w", store.ErrNotFound), http.StatusNotFound},
		`Node \"other-node\"`: {ledElsewhere{errors.New("x")}, http.StatusConflict},
		`"unavailable"`:       {store.ErrUnavailable, http.StatusServiceUnavailable},
	} {
		d := newDeps("org/m")
		asked := ""
		d.Forget = func(_ context.Context, pool string) error {
			asked = pool
			return test.err
		}
		mux := http.NewServeMux()
		console.New(d).Register(mux)
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodDelete,
			"/admin/pools/org%2Fm/learned", nil))
		if answer.Code != test.status || !strings.Contains(answer.Body.String(), want) ||
			asked != "org/m" {
			t.Errorf("%v: asked for %q, status %d, %s", test.err, asked, answer.Code, answer.Body)
		}
	}
}
