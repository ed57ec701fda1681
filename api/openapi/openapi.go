// Package openapi holds the OpenAPI 3.1 description of the API's address.
package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var source []byte

// JSON returns the description as JSON. version is the release of the daemon.
func JSON(version string) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	document["info"].(map[string]any)["version"] = version
	encoded, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode openapi.yaml: %w", err)
	}
	return encoded, nil
}
