package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// hidden replaces what may be a secret.
const hidden = "(hidden)"

// ShownYAML returns the configuration with all keys, without what may be a secret: values of
// headers, and credentials and queries of URLs.
func (c Config) ShownYAML() ([]byte, error) {
	root, err := encodeShort(c)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return writeNode(withoutSecrets("", root))
}

// ShownJSON is ShownYAML as JSON.
func (c Config) ShownJSON() ([]byte, error) {
	text, err := c.ShownYAML()
	if err != nil {
		return nil, err
	}
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return json.Marshal(tree)
}

// withoutSecrets returns a copy of the encoded value at path without what may be a secret.
func withoutSecrets(path string, n *yaml.Node) *yaml.Node {
	shown := *n
	shown.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			at = join(path, n.Content[i-1].Value)
		}
		shown.Content[i] = withoutSecrets(at, child)
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			shown.Content[i] = child // a key
		}
	}
	if n.Kind != yaml.ScalarNode {
		return &shown
	}
	if strings.Contains("."+path+".", ".headers.") && n.Value != "" {
		return text(hidden)
	}
	shown.Value = withoutCredentials(n.Value)
	return &shown
}

// withoutCredentials returns a URL without user, password and the values of its query. Another
// text stays as it is.
func withoutCredentials(value string) string {
	if !strings.Contains(value, "://") {
		return value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.User == nil && u.RawQuery == "" {
		return value
	}
	if u.User != nil {
		u.User = url.User("hidden")
	}
	if u.RawQuery != "" {
		u.RawQuery = "hidden"
	}
	return u.String()
}

// quotedURL returns the text of a URL that can't be used in quotes, without what may hold a
// password or a token: where it would be is unknown.
func quotedURL(text string) string {
	if strings.ContainsAny(text, "@?") {
		return hidden
	}
	return strconv.Quote(text)
}
