package keda

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/internal/suggest"
	"github.com/tidefill/tidefill/registry"
)

// role is whose replicas a ScaledObject scales.
type role string

const (
	runners     role = "runners"     // model servers
	dispatchers role = "dispatchers" // processes of this program
)

// reference is what a ScaledObject says in the metadata of its trigger.
type reference struct {
	object string // namespace/name
	pool   string
	role   role
	autoscale.Declaration
}

// metadataKeys are the keys that a trigger may have, without those that are KEDA's own.
var metadataKeys = []string{"pool", "role", "minReplicas", "maxReplicas", "coldStart", "cost",
	"spot"}

// kedaKeys are KEDA's own keys, which it passes on. misplaced are keys that KEDA reads elsewhere.
var (
	kedaKeys  = []string{"scalerAddress", "enableTLS", "unsafeSsl"}
	misplaced = map[string]string{
		"metricType":    "it is a field of the trigger, beside metadata",
		"caCert":        "it belongs to a TriggerAuthentication",
		"tlsClientCert": "it belongs to a TriggerAuthentication",
		"tlsClientKey":  "it belongs to a TriggerAuthentication",
	}
)

// runnerKeys are those that describe runners, and say nothing of dispatchers.
var runnerKeys = []string{"coldStart", "cost", "spot"}

// spotReclaim is the share of spot replicas that is expected to be reclaimed in an hour if the
// ScaledObject says only that they are spot instances.
const spotReclaim = 0.05

// objectOf names a ScaledObject in errors.
func objectOf(ref *externalscaler.ScaledObjectRef) string {
	const most = 253 // Kubernetes' limit of a name
	return bounded(ref.GetNamespace(), most) + "/" + bounded(ref.GetName(), most)
}

// parse reads the metadata of a trigger. pools are the configured ones.
func parse(
	ref *externalscaler.ScaledObjectRef, pools []registry.Pool,
) (reference, error) {
	r := reference{object: objectOf(ref), role: runners}
	p := parser{object: r.object}
	values := p.values(ref.GetScalerMetadata())
	if given, ok := values["role"]; ok {
		r.role = role(given)
		if r.role != runners && r.role != dispatchers {
			p.fault("role", "is %q, must be runners or dispatchers", shortened(given))
		}
	}
	r.Min, r.Max = p.count(values, "minReplicas", 0), p.count(values, "maxReplicas", 1)
	if r.Min != nil && r.Max != nil && *r.Min > *r.Max {
		p.fault("minReplicas", "is %d, more than maxReplicas, %d", *r.Min, *r.Max)
	}
	r.ColdStart = p.duration(values, "coldStart")
	r.Price = p.price(values)
	r.Reclaim = p.spot(values)
	for _, key := range runnerKeys {
		if _, given := values[key]; given && r.role == dispatchers {
			p.fault(key, "has no effect: it describes runners, and role is dispatchers; remove it")
		}
	}
	if r.pool = values["pool"]; r.pool == "" {
		p.fault("pool", "is missing; %s", poolsThere(pools))
	}
	i := indexOf(r.pool, pools)
	if i >= 0 && r.role == runners && r.Min != nil && *r.Min > pools[i].Max {
		p.fault("minReplicas", "is %d, more than the %d replicas that pool %s may have; lower it, "+
			"or raise max of the pool in the daemon's configuration", *r.Min, pools[i].Max, r.pool)
	}
	if p.err != nil {
		return reference{}, status.Error(codes.InvalidArgument, p.err.Error())
	}
	if i < 0 {
		return reference{}, status.Errorf(codes.NotFound, "ScaledObject %s: there is no pool %q%s",
			r.object, shortened(r.pool), nearest(r.pool, pools))
	}
	return r, nil
}

// indexOf returns the index of the pool with this name, -1 if there is none.
func indexOf(name string, pools []registry.Pool) int {
	for i := range pools {
		if pools[i].Name == name {
			return i
		}
	}
	return -1
}

// poolsThere lists the pools that can be named, the first of many.
func poolsThere(pools []registry.Pool) string {
	const most = 5
	if len(pools) == 0 {
		return "the daemon has no pools; add them to its configuration, in the section pools"
	}
	names := namesOf(pools[:min(len(pools), most)])
	if more := len(pools) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "name one of " + strings.Join(names, ", ")
}

func nearest(name string, pools []registry.Pool) string {
	if near := suggest.Nearest(name, namesOf(pools)); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return "; " + poolsThere(pools)
}

func namesOf(pools []registry.Pool) []string {
	names := make([]string, len(pools))
	for i, c := range pools {
		names[i] = c.Name
	}
	return names
}

// parser reads values and keeps the first fault.
type parser struct {
	object string
	err    error
}

func (p *parser) fault(key, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("ScaledObject %s: the trigger's metadata.%s %s", p.object,
			shortened(key), fmt.Sprintf(format, args...))
	}
}

// values returns the metadata by key. KEDA resolves keys that end in FromEnv.
func (p *parser) values(metadata map[string]string) map[string]string {
	values := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		name := strings.TrimSuffix(key, "FromEnv")
		switch elsewhere := misplaced[key]; {
		case slices.Contains(kedaKeys, name):
		case elsewhere != "":
			p.fault(key, "has no effect: %s", elsewhere)
		case !slices.Contains(metadataKeys, name):
			remedy := "remove it, or use " + strings.Join(metadataKeys, ", ")
			if near := suggest.Nearest(name, metadataKeys); near != "" {
				remedy = "did you mean " + near + "?"
			}
			p.fault(key, "is unknown; %s", remedy)
		default:
			if _, twice := values[name]; twice {
				p.fault(key, "is given twice; remove one of %s and %sFromEnv", name, name)
			}
			values[name] = strings.TrimSpace(metadata[key])
		}
	}
	return values
}

// maxReplicas limits numbers of replicas.
const maxReplicas = 100_000

func (p *parser) count(values map[string]string, key string, least int) *int {
	text, ok := values[key]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maxReplicas {
		p.fault(key, "is %q, must be a whole number from %d to %d", shortened(text), least,
			maxReplicas)
		return nil
	}
	return &n
}

func (p *parser) duration(values map[string]string, key string) *time.Duration {
	text, ok := values[key]
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > 24*time.Hour {
		p.fault(key, "is %q, must be a duration from 1s to 24h, such as 3m or 150s",
			shortened(text))
		return nil
	}
	return &d
}

// The range of prices bounds their ratios too.
const minPrice, maxPrice = 1e-6, 1e6

func (p *parser) price(values map[string]string) *float64 {
	text, ok := values["cost"]
	if !ok {
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != 0 && !(x >= minPrice && x <= maxPrice) {
		p.fault("cost", "is %q, must be 0, or a price per hour from 0.000001 to 1000000",
			shortened(text))
		return nil
	}
	return &x
}

// spot reads either a boolean or the share of replicas that is reclaimed in an hour.
func (p *parser) spot(values map[string]string) *float64 {
	text, ok := values["spot"]
	if !ok {
		return nil
	}
	var share float64
	switch text {
	case "true":
		share = spotReclaim
	case "false":
	default:
		var err error
		share, err = strconv.ParseFloat(text, 64)
		if err != nil || !(share >= 0 && share < 1) { // 1 is more likely meant as true
			p.fault("spot", "is %q, must be true, false, or the share that is reclaimed in an "+
				"hour, such as 0.05", shortened(text))
			return nil
		}
	}
	return &share
}

// shortened bounds what of an outsider's text goes into an error.
func shortened(text string) string { return bounded(text, 80) }

// bounded returns a text of at most so many bytes that is valid UTF-8.
func bounded(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strings.ToValidUTF8(text, "?")
}
