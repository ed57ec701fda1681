package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Config configures traces. Start from DefaultConfig. The standard variables of OpenTelemetry count
// too, such as OTEL_EXPORTER_OTLP_HEADERS, which may hold secrets.
type Config struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, such as http://collector:4318.
	// Empty: that of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT; without
	// any, traces are off.
	Endpoint string `yaml:"endpoint"`
	// Sample is the share of lines with a span of their own, 0 to 1. Batches and chunks always have
	// one. Default: 0.01.
	Sample float64 `yaml:"sample"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config { return Config{Sample: 0.01} }

// Validate reports every value that can't be used.
func (c Config) Validate() error {
	var faults []error
	if c.Endpoint != "" {
		if err := checkEndpoint(c.Endpoint); err != nil {
			faults = append(faults, fmt.Errorf("endpoint %w", err))
		}
	}
	if !(c.Sample >= 0 && c.Sample <= 1) {
		faults = append(faults, fmt.Errorf("sample is %v, must be from 0 to 1", c.Sample))
	}
	return errors.Join(faults...)
}

// checkEndpoint reports what is wrong with the URL of a collector. It does not repeat what may be a
// secret.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case strings.ContainsAny(text, "@?#"):
		return fmt.Errorf("has a user, a query or a fragment; remove them, and put secrets into %s",
			headersVariable)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("is %q; write the URL of a collector for OTLP over HTTP, such as "+
			"http://collector:4318", text)
	}
	return nil
}

// Variables of OpenTelemetry that are read here. The SDK reads others.
const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	headersVariable        = "OTEL_EXPORTER_OTLP_HEADERS"
	protocolVariable       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolVariable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	disabledVariable       = "OTEL_SDK_DISABLED"
	exporterVariable       = "OTEL_TRACES_EXPORTER"
)

// target returns the URL that spans are posted to; empty: traces are off.
func (c Config) target() (string, error) {
	if strings.EqualFold(os.Getenv(disabledVariable), "true") ||
		os.Getenv(exporterVariable) == "none" {
		return "", nil
	}
	if c.Endpoint != "" {
		return below(c.Endpoint), nil // Validate has checked it
	}
	for _, variable := range []string{tracesEndpointVariable, endpointVariable} {
		endpoint := os.Getenv(variable)
		if endpoint == "" {
			continue
		}
		if err := checkEndpoint(endpoint); err != nil {
			return "", fmt.Errorf("%s %w; or turn traces off by %s=true", variable, err,
				disabledVariable)
		}
		if variable == tracesEndpointVariable { // used as it is, as the specification says
			return endpoint, nil
		}
		return below(endpoint), nil
	}
	return "", nil
}

// below returns the URL for traces of a collector.
func below(endpoint string) string {
	const traces = "/v1/traces"
	return strings.TrimSuffix(strings.TrimSuffix(endpoint, "/"), traces) + traces
}
