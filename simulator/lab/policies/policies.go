// Package policies registers the flow-control policies that exist to be compared with, beside those
// of package flowcontrol/builtin.
package policies

import (
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/policies/budget"
	"github.com/tidefill/tidefill/simulator/lab/policies/gradient"
	"github.com/tidefill/tidefill/simulator/lab/policies/model"
	"github.com/tidefill/tidefill/simulator/lab/policies/saturation"
)

// Published lists the policies with their settings to compare with. Their sources are in
// simulator/lab/docs/policies.md.
var Published = []compare.Published{
	// The settings after the published one leave out its 64 workers, which would bound the pool
	// before the policy does.
	{Policy: budget.Name, Settings: [][]string{
		{},
		{"max_concurrency=15", "baseline=0.1", "per_pool=0"},
		{"max_concurrency=20", "baseline=0.1", "per_pool=0"},
		{"max_concurrency=25", "baseline=0.1", "per_pool=0"},
		{"max_concurrency=50", "baseline=0.1", "per_pool=0"},
		{"max_concurrency=100", "baseline=0.1", "per_pool=0"},
		{"max_concurrency=15", "baseline=0.1", "per_pool=0", "load=running"},
		{"max_concurrency=20", "baseline=0.1", "per_pool=0", "load=running"},
		{"max_concurrency=25", "baseline=0.1", "per_pool=0", "load=running"},
		{"max_concurrency=50", "baseline=0.1", "per_pool=0", "load=running"},
		{"max_concurrency=100", "baseline=0.1", "per_pool=0", "load=running"},
	}},
	{Policy: saturation.Name, Settings: [][]string{{"threshold=0.8"}, {"threshold=0.5"},
		{"threshold=0.8", "per_pool=0"}, {"threshold=0.5", "per_pool=0"}}},
	{Policy: gradient.Name, Settings: [][]string{{"tolerance=1.5"}, {"tolerance=2"}}},
	{Policy: model.Name, Settings: [][]string{{}, {"target_share=0.5"}, {"target_share=0.6"},
		{"target_share=0.7"}, {"target_share=0.9"}, {"target_share=1"}}},
}
