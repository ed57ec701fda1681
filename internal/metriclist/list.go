// Package metriclist lists the metrics of the daemon, from the code that registers them, and keeps
// the table in docs/metrics.md.
package metriclist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store/cluster"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/redis"
)

// Metric describes one metric of the daemon.
type Metric struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// List returns the metrics of a daemon that scales a pool, through which interactive requests pass,
// and that has the cluster store with Redis and the default configuration otherwise, by name. Those
// of the Go runtime and of the process are not among them.
func List() (_ []Metric, err error) {
	dir, err := os.MkdirTemp("", "tidefill-metrics-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen, cfg.Node = dir, "127.0.0.1:0", "127.0.0.1:0", "list"
	cfg.Scaler.Listen, cfg.Inline.Enabled = "127.0.0.1:0", true
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "pool",
		Models: []string{"model"}, Max: 1}}}
	r := &collectors{Registry: prometheus.NewRegistry()}
	daemon, err := app.New(cfg, app.Options{Registry: r})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, daemon.Close()) }()
	// Nobody listens there: a connection begins without a server.
	away := redis.DefaultConfig()
	away.URL = "redis://127.0.0.1:1"
	medium, err := redis.Open(context.Background(), away, redis.Options{Registerer: r})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, medium.Close()) }()
	noStats := func() (s postgres.PoolStats) { return s }
	if err := cluster.NewMetrics().Register(r, noStats); err != nil {
		return nil, err
	}
	return r.list()
}

// collectors is a registry that remembers its collectors.
type collectors struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *collectors) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

func (r *collectors) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func (r *collectors) list() ([]Metric, error) {
	types := map[string]string{} // of metrics without labels, which have values from the start
	families, err := r.Gather()
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		types[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	var all []Metric
	for _, c := range r.collectors {
		for _, d := range descriptions(c) {
			m, err := parse(d)
			if err != nil {
				return nil, err
			}
			if !strings.HasPrefix(m.Name, "tidefill_") {
				continue // of a library
			}
			m.Type = cmp.Or(types[m.Name], typeOf(c, m.Name))
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func descriptions(c prometheus.Collector) (all []*prometheus.Desc) {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	for d := range ch {
		all = append(all, d)
	}
	return all
}

// typeOf returns the type of a collector's metrics, which have no value yet. By convention only the
// names of counters end in _total.
func typeOf(c prometheus.Collector, name string) string {
	if _, is := c.(*prometheus.HistogramVec); is {
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// The fields of a description can be read from its text only.
var (
	description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), ` +
		`help: ("(?:[^"\\]|\\.)*"),(?: unit: "[^"]*",)? constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constLabel = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
)

func parse(d *prometheus.Desc) (m Metric, err error) {
	parts := description.FindStringSubmatch(d.String())
	if parts == nil {
		return m, fmt.Errorf("the description of a metric has another form than expected: %v", d)
	}
	if m.Name, err = strconv.Unquote(parts[1]); err != nil {
		return m, err
	}
	if m.Help, err = strconv.Unquote(parts[2]); err != nil {
		return m, err
	}
	for _, label := range constLabel.FindAllStringSubmatch(parts[3], -1) {
		m.Labels = append(m.Labels, label[1])
	}
	if parts[4] != "" {
		m.Labels = append(m.Labels, strings.Split(parts[4], ",")...)
	}
	return m, nil
}
