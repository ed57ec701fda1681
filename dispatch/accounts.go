package dispatch

import (
	"strings"
	"sync"
)

// maxAccounts limits the pairs of tenant and model with series of their own. Those that come later
// share one: the ledger has them all.
const maxAccounts = 200

const otherAccounts = "other"

type accounts struct {
	mu    sync.Mutex
	known map[account]struct{}
}

type account struct{ tenant, model string }

// labels returns the values of the labels tenant and model.
func (a *accounts) labels(tenant, model string) (of account) {
	of = account{strings.ToValidUTF8(tenant, "?"), strings.ToValidUTF8(model, "?")}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.known[of]; known {
		return of
	}
	if len(a.known) >= maxAccounts {
		return account{otherAccounts, otherAccounts}
	}
	if a.known == nil {
		a.known = map[account]struct{}{}
	}
	a.known[of] = struct{}{}
	return of
}
