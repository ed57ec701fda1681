package keda_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale/keda"
)

func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

var metricName = regexp.MustCompile(`^tidefill-(replicas|dispatchers)-[a-z0-9-]{0,63}$`)

// No metadata does more than fail its own call, with an error that is short and names the object.
func FuzzMetadata(f *testing.F) {
	f.Add("o", "night", "maxReplicas", "3")
	f.Add("o", "night", "coldStart", "3m")
	f.Add("o", "", "poolFromEnv", "night")
	f.Add("o", "night\x00", "spot", "0.5")
	f.Add("o", "night", "FromEnv", "")
	f.Add("\n\xff", "night", "role", "\xff")
	f.Add(strings.Repeat("o", 1000), strings.Repeat("n", 1000), "cost", "1e400")
	f.Fuzz(func(t *testing.T, object, pool, key, value string) {
		ref := &externalscaler.ScaledObjectRef{Name: object, Namespace: "llm",
			ScalerMetadata: map[string]string{"pool": pool, key: value}}
		if name := keda.MetricName(ref); !metricName.MatchString(name) {
			t.Errorf("the metric is called %q", name)
		}
		err := keda.CheckMetadata(ref, pools)
		if err == nil {
			return
		}
		code, text := status.Code(err), status.Convert(err).Message()
		if code != codes.InvalidArgument && code != codes.NotFound ||
			!strings.HasPrefix(text, "ScaledObject llm/") || len(text) > 900 ||
			!utf8.ValidString(text) {
			t.Errorf("got %v: %q", code, text)
		}
	})
}
