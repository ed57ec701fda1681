package kube

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// noWatch is the type of what client-go returns in place of an error if connections end before the
// API server has answered.
var noWatch = reflect.TypeOf(watch.NewEmptyWatch())

var errClosed = errors.New("connections to the API server are closed before it answers")

// source lists and watches the objects of one kind that a filter selects, and knows whether it is
// connected. It is a cache.ListerWatcherWithContext.
type source struct {
	query  query
	report func(object, error) // of every failure, and nil when a watch is open again

	mu     sync.Mutex
	lost   time.Time // when the last watch ended or failed; zero: one is open
	opened int       // watches so far
}

// query is what a source asks for.
type query struct {
	object  object
	labels  string
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	restart func()        // called whenever a watch is opened again
	timeout time.Duration // of a list
}

func newSource(q query, report func(object, error)) *source {
	return &source{query: q, report: report, lost: time.Now()}
}

// IsWatchListSemanticsUnSupported has client-go list objects before it watches them. Lists of
// pools are short, and API servers before 1.34 know no other way.
func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.Lister, which client-go calls only without a context.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch implements cache.Watcher; see List.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext.
func (s *source) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	listing, cancel := context.WithTimeout(ctx, s.query.timeout)
	defer cancel()
	list, err := s.query.list(listing, s.filter(options))
	if err != nil && ctx.Err() == nil {
		s.fail("list", err)
	}
	return list, err
}

// WatchWithContext implements cache.WatcherWithContext.
func (s *source) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	w, err := s.query.watch(ctx, s.filter(options))
	if err == nil && reflect.TypeOf(w) == noWatch {
		err = errClosed
	}
	if err != nil {
		if ctx.Err() == nil {
			s.fail("watch", err)
		}
		return nil, err
	}
	s.mu.Lock()
	s.lost = time.Time{}
	s.opened++
	again := s.opened > 1
	s.mu.Unlock()
	if again {
		s.query.restart()
	}
	s.report(s.query.object, nil)
	return &openWatch{Interface: w, stopped: s.closed}, nil
}

func (s *source) filter(options metav1.ListOptions) metav1.ListOptions {
	options.LabelSelector = s.query.labels
	if name := s.query.object.Name; name != "" {
		options.FieldSelector = "metadata.name=" + name
	}
	return options
}

// lostAt returns when the API server was last heard of; zero: a watch is open.
func (s *source) lostAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *source) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost.IsZero() {
		s.lost = time.Now()
	}
}

func (s *source) fail(verb string, err error) {
	s.closed()
	s.report(s.query.object, s.query.object.explain(verb, err))
}

// openWatch is a watch that reports when it is stopped, which client-go does as soon as it ends.
type openWatch struct {
	watch.Interface
	once    sync.Once
	stopped func()
}

// Stop implements watch.Interface.
func (w *openWatch) Stop() {
	w.Interface.Stop()
	w.once.Do(w.stopped)
}
