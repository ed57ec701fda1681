package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// storeTryAfter is the time between two tries to open a store that is away.
	storeTryAfter = time.Second
	// storeLogAfter is the time between two lines of the log about it.
	storeLogAfter = 30 * time.Second
	// storeSlow is how long a try may take before the process answers that it waits. A server that
	// hangs takes as long as the limits of calls.
	storeSlow = time.Second
)

// awaitStore opens the store. While a part of it is away it tries again, /readyz says why, and
// users get 503. What only an operator can repair is an error at once.
func (a *App) awaitStore() error {
	trying, stop := context.WithCancel(context.Background())
	defer stop()
	opened := a.tryStore(trying)
	select {
	case err := <-opened:
		if !isAway(err) {
			return err
		}
		opened <- err
	case <-time.After(storeSlow):
	}
	if err := a.listen(); err != nil {
		stop()
		return errors.Join(<-opened, err)
	}
	w := &waiting{tls: a.cfg.TLS.Enabled(), reason: "it has not answered yet"}
	defer w.serve(a.listener, answerAway)()
	defer w.serve(a.adminListener, w.answerReadiness)()
	return a.tryUntilOpen(trying, stop, w, opened)
}

// tryStore opens the store in the background.
func (a *App) tryStore(ctx context.Context) (opened chan error) {
	opened = make(chan error, 1)
	go func() { opened <- a.openStore(ctx) }()
	return opened
}

// tryUntilOpen tries again while the store is away, until the process is to stop. opened has the
// result of the first try, which stop ends.
func (a *App) tryUntilOpen(
	trying context.Context, stop func(), w *waiting, opened chan error,
) (err error) {
	var logged time.Time
	for {
		select {
		case err = <-opened:
		case <-a.options.Stop:
			stop()
			return errors.Join(errors.New("stopped while the store was opened"), <-opened)
		}
		if !isAway(err) {
			break
		}
		w.set(err.Error())
		if time.Since(logged) >= storeLogAfter {
			logged = time.Now()
			a.log.Warn("the start waits for the store", "error", err)
		}
		select {
		case <-a.options.Stop:
			return fmt.Errorf("stopped while the start waited for the store: %w", err)
		case <-time.After(storeTryAfter):
		}
		opened = a.tryStore(trying)
	}
	if err == nil && !logged.IsZero() {
		a.log.Info("the start waits no longer for the store")
	}
	return err
}

// isAway reports whether the store may come back without an operator.
func isAway(err error) bool {
	return errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrRefused)
}

// waiting answers while the store is away.
type waiting struct {
	tls    bool // the addresses are for TLS
	mu     sync.Mutex
	reason string
}

func (w *waiting) set(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
}

// answerReadiness answers /healthz and /readyz, and nothing else.
func (w *waiting) answerReadiness(out http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		out.Write([]byte("ok\n"))
		return
	case "/readyz":
	default:
		http.Error(out, "the store is away; see /readyz", http.StatusServiceUnavailable)
		return
	}
	w.mu.Lock()
	state := readiness{Waiting: []string{"the store: " + w.reason}, Degraded: []string{}}
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(out).Encode(state) // a client that has gone reads no error
}

// answerAway answers users as the API does for a store that is away.
func answerAway(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "2")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, `{"error":{"message":"The server's storage is unavailable; send the request `+
		`again later.","type":"server_error","param":null,"code":"store_unavailable"}}`)
}

// serve answers on a listener until stop is called, which leaves the listener open. It does nothing
// without a listener, or with TLS, whose certificates are not loaded yet.
func (w *waiting) serve(l net.Listener, answer http.HandlerFunc) (stop func()) {
	tcp, ok := l.(*net.TCPListener)
	if !ok || w.tls {
		return func() {}
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(lent{tcp}) // it ends by stop
	}()
	return func() {
		_ = server.Close()
		<-served
		_ = tcp.SetDeadline(time.Time{})
	}
}

// lent is a listener that stays open when its server closes it.
type lent struct{ *net.TCPListener }

// Close ends Accept.
func (l lent) Close() error { return l.SetDeadline(time.Now()) }
