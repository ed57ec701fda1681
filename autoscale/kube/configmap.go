package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ConfigMaps names ConfigMaps of a namespace.
type ConfigMaps struct {
	Namespace string
	Names     []string
}

// answerWithin is the time in which a watch that has ended is open again, unless the API server is
// away. Requests to one that drops packets fail only after minutes.
const answerWithin = 3 * time.Second

var errNoAnswer = errors.New("the API server does not answer")

// ConfigMap is a copy of a ConfigMap, which Run keeps current. While the API server is away, it
// holds the last state. Its methods may be called concurrently.
type ConfigMap struct {
	entries *mirror[map[string]string]
	listed  chan struct{} // closed when it has been listed

	mu    sync.Mutex
	fault error // the first one of its kind
}

// NewConfigMaps returns the ConfigMaps in the order of their names. It fails if there is no cluster
// to connect to; it does not wait for the API server to answer.
func NewConfigMaps(cfg Config, wanted ConfigMaps) ([]*ConfigMap, error) {
	connected, err := connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("read ConfigMaps of namespace %s: %w", wanted.Namespace, err)
	}
	all := make([]*ConfigMap, len(wanted.Names))
	for i, name := range wanted.Names {
		all[i] = newConfigMap(connected, wanted.Namespace, name)
	}
	return all, nil
}

func newConfigMap(c *clients, namespace, name string) *ConfigMap {
	m := &ConfigMap{listed: make(chan struct{})}
	q := c.configMap(namespace, name)
	q.restart, q.timeout = func() {}, RequestTimeout
	m.entries = newMirror(newSource(q, m.report), entriesOf,
		sync.OnceFunc(func() { close(m.listed) }))
	return m
}

// Run keeps the copy current until ctx is done.
func (m *ConfigMap) Run(ctx context.Context) { m.entries.run(ctx) }

// Listed returns a channel that is closed when it is known whether the ConfigMap exists.
func (m *ConfigMap) Listed() <-chan struct{} { return m.listed }

// Read returns the entries by key; nil: it has none, or does not exist. The error says why the copy
// may be old. Before listed is true there is no copy, and the error is not nil.
func (m *ConfigMap) Read() (entries map[string]string, listed bool, err error) {
	entries, _, listed = m.entries.one()
	lost := m.entries.source.lostAt()
	away := !lost.IsZero() && time.Since(lost) > answerWithin
	m.mu.Lock()
	defer m.mu.Unlock()
	if err = m.fault; err == nil && (away || !listed) {
		err = errNoAnswer
	}
	return entries, listed, err
}

// report notes the present fault; nil: there is none. Texts of one kind differ in ports alone.
func (m *ConfigMap) report(_ object, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil || m.fault == nil || kindOf(err) != kindOf(m.fault) {
		m.fault = err
	}
}

// entriesOf returns the entries of a ConfigMap that are texts.
func entriesOf(o any) map[string]string {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	return m.Data
}
