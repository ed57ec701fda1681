package keda

import (
	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/tidefill/tidefill/registry"
)

// CheckMetadata returns the error of a ScaledObject.
func CheckMetadata(ref *externalscaler.ScaledObjectRef, pools []registry.Pool) error {
	_, err := parse(ref, pools)
	return err
}

// MetricName returns the name of the metric of a ScaledObject.
var MetricName = metricName
