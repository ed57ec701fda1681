package dispatch_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
)

// changing is an upstream whose list of models changes.
type changing struct {
	*httptest.Server
	mu     sync.Mutex
	models []string
	answer http.HandlerFunc // nil: okBody
}

func newChanging(t *testing.T, models ...string) *changing {
	u := &changing{models: models}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if u.answer != nil {
				u.answer(w, r)
			} else {
				io.WriteString(w, okBody)
			}
			return
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		var list struct {
			Data []map[string]string `json:"data"`
		}
		for _, m := range u.models {
			list.Data = append(list.Data, map[string]string{"id": m})
		}
		json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(u.Close)
	return u
}

// list changes the models that the upstream lists.
func (u *changing) list(models ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.models = models
}

// often has a dispatcher read lists of models all the time.
func (u *changing) often(c *dispatch.Config, _ *dispatch.Deps) {
	c.ModelsEvery = 2 * time.Millisecond
}
