package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// ledger counts bytes that are being stored, by name, so that concurrent requests do not exceed a
// limit together.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account
}

// account counts the bytes being stored for one name.
type account struct {
	mu       sync.Mutex
	reserved int64
	holders  int // guarded by the ledger
}

// limit is the limit of an account, and the bytes that count against it in the store already.
type limit struct {
	most   int64
	stored func(context.Context) (int64, error)
}

// reservation is the part of an account that one request has reserved. It must be released when its
// bytes are in the store, or discarded.
type reservation struct {
	ledger  *ledger
	name    string
	account *account
	limit   limit
	bytes   int64
}

// open returns an empty reservation in the account of a name.
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

// release ends the reservation.
func (r *reservation) release() {
	r.account.mu.Lock()
	r.account.reserved -= r.bytes
	r.account.mu.Unlock()
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	if r.account.holders--; r.account.holders == 0 {
		delete(r.ledger.accounts, r.name)
	}
}

// reserve adds n bytes if the limit permits. used is the number of bytes stored or reserved before.
func (r *reservation) reserve(ctx context.Context, n int64) (used int64, ok bool, err error) {
	// Locked during the store's answer too: it includes what is released in the meantime.
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	if used, ok, err = r.ask(ctx, n); ok {
		r.account.reserved += n
		r.bytes += n
	}
	return used, ok, err
}

// fits reports whether the limit permits n more bytes.
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

// quotaReservation reserves bytes of a tenant's quota for a request. It is nil, and permits any
// number, if the tenant has no quota.
type quotaReservation struct {
	*reservation
	tenant string
}

// openQuota returns a reservation of the tenant's quota for one request. It must be released.
func (s *Server) openQuota(tenant string) *quotaReservation {
	most := s.config().quotaOf(tenant)
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

// reserve reserves n bytes, or returns an *httpError.
func (q *quotaReservation) reserve(ctx context.Context, n int64) error {
	if q == nil {
		return nil
	}
	used, ok, err := q.reservation.reserve(ctx, n)
	return q.refused(used, ok, err)
}

// expect returns an error for a request of n bytes that cannot fit, before any of them is read.
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
		"The files and uploads of the tenant '%s' have %d bytes, including those in progress, "+
			"and its quota is %d. "+
			"Delete files, or ask the operator for a larger quota.", q.tenant, used,
		q.limit.most)
	e.Status, e.NoRetry = http.StatusRequestEntityTooLarge, true
	return e
}
