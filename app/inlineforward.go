package app

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// inlineURL returns where other processes send interactive requests for the pools that this one
// leads. Empty: it takes none.
func (a *App) inlineURL() string {
	cfg := a.running.Load()
	switch {
	case a.inline == nil || a.listener == nil:
		return ""
	case cfg.Inline.AdvertiseURL != "":
		return cfg.Inline.AdvertiseURL
	}
	address, is := a.listener.Addr().(*net.TCPAddr)
	if !is {
		return ""
	}
	ip := address.IP
	if ip.IsUnspecified() {
		if ip = ownAddress(); ip == nil {
			return ""
		}
	}
	return a.scheme() + net.JoinHostPort(ip.String(), strconv.Itoa(address.Port))
}

// ownAddress returns an address by which other machines reach this one; nil: none is known.
func ownAddress() net.IP {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, one := range all {
		if of, is := one.(*net.IPNet); is && of.IP.IsGlobalUnicast() {
			return of.IP
		}
	}
	return nil
}

// ledModels lists the models of the pools that this process leads and that have a runner.
func (a *App) ledModels() (models []string) {
	for _, p := range a.dispatcher.Pools() {
		if len(p.Runners) > 0 {
			models = append(models, p.Models...)
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// leaders are the processes that take interactive requests, as last read.
type leaders struct {
	mu  sync.Mutex
	at  time.Time
	all []leader
}

// leader is a process that plans pools.
type leader struct {
	url          *url.URL
	leads, known []string // models
}

const (
	// leadersEvery is the time for which what was read of leaders counts as new.
	leadersEvery = 500 * time.Millisecond
	// leaderGone is the age of a publication from which on a process is taken for gone: some times
	// the interval at which they come.
	leaderGone = 12 * time.Second
)

// otherLeaders returns the processes that take interactive requests, those with the highest epochs
// first.
func (a *App) otherLeaders(ctx context.Context) []leader {
	l := &a.leaders
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < leadersEvery {
		return l.all
	}
	l.at, l.all = time.Now(), nil
	for _, p := range a.others(ctx) {
		var of report
		if p.Age > leaderGone || json.Unmarshal(p.Data, &of) != nil || of.URL == "" {
			continue
		}
		at, err := url.Parse(of.URL)
		if err == nil && at.Host != "" {
			l.all = append(l.all, leader{at, of.Leads, of.Catalog.Known})
		}
	}
	return l.all
}

// leaderOf returns where interactive requests of a model find a place; nil: no other process leads
// it.
func (a *App) leaderOf(ctx context.Context, model string) *url.URL {
	for _, l := range a.otherLeaders(ctx) {
		if slices.Contains(l.leads, model) {
			return l.url
		}
	}
	return nil
}

// knownElsewhere reports whether another process knows runners of the model.
func (a *App) knownElsewhere(model string) bool {
	return slices.ContainsFunc(a.otherLeaders(context.Background()), func(l leader) bool {
		return slices.Contains(l.known, model)
	})
}
