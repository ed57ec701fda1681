package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// A ledger grants room for bytes that are on their way, so that requests side by side don't pass a
// limit together.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account
}

// account is the bytes under way for one name.
type account struct {
	mu       sync.Mutex
	reserved int64
	holders  int // guarded by the ledger
}

// limit is what an account may hold: so many bytes at most, of which some are in the store already.
type limit struct {
	most   int64
	stored func(context.Context) (int64, error)
}

// reservation is the share of one request in an account. It must be released when its bytes are in the
// store, or dropped.
type reservation struct {
	ledger  *ledger
	name    string
	account *account
	limit   limit
	taken   int64
}

// open gives a request a share in the account of a name.
func (l *ledger) open(name string, of limit) *reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts == nil {
		l.accounts = make(map[string]*account)
	}
	a := l.accounts[name]
	if a == nil {
		a = new(account)
		l.accounts[name] = a
	}
	a.holders++
	return &reservation{ledger: l, name: name, account: a, limit: of}
}

// release gives the room back.
func (r *reservation) release() {
	r.account.mu.Lock()
	r.account.reserved -= r.taken
	r.account.mu.Unlock()
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if r.account.holders--; r.account.holders == 0 {
		delete(r.ledger.accounts, r.name)
	}
}

// reserve grants n more bytes, or says how many bytes are used or under way already.
func (r *reservation) reserve(ctx context.Context, n int64) (used int64, ok bool, err error) {
	// while the store is asked, too: what is released meanwhile is in the store's answer
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	if used, ok, err = r.ask(ctx, n); ok {
		r.account.reserved += n
		r.taken += n
	}
	return used, ok, err
}

// fits reports whether n more bytes could be granted now.
func (r *reservation) fits(ctx context.Context, n int64) (used int64, ok bool, err error) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	return r.ask(ctx, n)
}

func (r *reservation) ask(ctx context.Context, n int64) (used int64, ok bool, err error) {
	stored, err := r.limit.stored(ctx)
	if err != nil {
		return 0, false, err
	}
	used = stored + r.account.reserved
	return used, used+n <= r.limit.most, nil
}

// quotaReservation is a tenant's room for what a request takes in. It is nil, and grants all, if the
// tenant has no quota.
type quotaReservation struct {
	*reservation
	tenant string
}

// openQuota returns the room of a tenant for one request; it must be released.
func (s *Server) openQuota(tenant string) *quotaReservation {
	most := s.config.quotaOf(tenant)
	if most == 0 {
		return nil
	}
	return &quotaReservation{tenant: tenant, reservation: s.quotas.open(tenant, limit{
		most:   most,
		stored: func(ctx context.Context) (int64, error) { return s.meta.UsedBytes(ctx, tenant) },
	})}
}

func (q *quotaReservation) release() {
	if q != nil {
		q.reservation.release()
	}
}

// reserve grants n bytes or refuses them.
func (q *quotaReservation) reserve(ctx context.Context, n int64) error {
	if q == nil {
		return nil
	}
	used, ok, err := q.reservation.reserve(ctx, n)
	return q.refused(used, ok, err)
}

// expect refuses a request of n bytes that can't fit, before any of them is read.
func (q *quotaReservation) expect(ctx context.Context, n int64) error {
	if q == nil || n <= 0 {
		return nil
	}
	used, ok, err := q.reservation.fits(ctx, n)
	return q.refused(used, ok, err)
}

func (q *quotaReservation) refused(used int64, ok bool, err error) error {
	if err != nil {
		return fmt.Errorf("check the quota of tenant %s: %w", q.tenant, err)
	}
	if ok {
		return nil
	}
	e := invalid("", "storage_quota_exceeded",
		"The files and uploads of the tenant '%s' have %d bytes, those under way included, and its quota is %d, "+
			"so this does not fit. Delete files, or ask the operator for more.", q.tenant, used,
		q.limit.most)
	e.Status, e.NoRetry = http.StatusRequestEntityTooLarge, true
	return e
}
