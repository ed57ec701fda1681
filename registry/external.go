package registry

import (
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/internal/strictyaml"
)

// ExternalTarget is a server elsewhere, with the budget that it grants.
type ExternalTarget struct {
	BaseURL string
	// APIKeyEnv names the environment variable, APIKeyFile the file that holds the bearer token.
	APIKeyEnv, APIKeyFile string
	// RequestsPerMinute and TokensPerMinute are the budget; 0: unknown.
	RequestsPerMinute, TokensPerMinute int
}

// variable matches the name of an environment variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// External returns the target of a provider of the type external. The faults have paths below
// provider_config.
func (p ProviderConfig) External() (t ExternalTarget, err error) {
	var f faults.List
	known := []string{"base_url", "api_key_env", "api_key_file", "requests_per_minute",
		"tokens_per_minute"}
	texts := map[string]*string{known[0]: &t.BaseURL, known[1]: &t.APIKeyEnv,
		known[2]: &t.APIKeyFile}
	numbers := map[string]*int{known[3]: &t.RequestsPerMinute, known[4]: &t.TokensPerMinute}
	for name, value := range p.Extra {
		text, isText := value.(string)
		number, isNumber := value.(int)
		switch {
		case texts[name] != nil && isText:
			*texts[name] = text
		case numbers[name] != nil && isNumber && number > 0:
			*numbers[name] = number
		case texts[name] != nil:
			f.Add(name, "must be a text")
		case numbers[name] != nil:
			f.Add(name, "must be an integer above 0")
		default:
			f.Add(name, "unknown key; %s", strictyaml.Known(name, known))
		}
	}
	target, parseErr := url.Parse(t.BaseURL)
	if parseErr != nil || target.Scheme != "http" && target.Scheme != "https" ||
		target.Host == "" || target.User != nil {
		f.Add("base_url", "must be a URL that begins with http:// or https://, without a user")
	} else if strings.ContainsAny(t.BaseURL, "?#") {
		f.Add("base_url", "has a query or a fragment, which no request would carry")
	} else if end := endpointOf(target.Path); end != "" {
		f.Add("base_url", "ends in %s, an endpoint that lines name; write the base", end)
	}
	f = append(f, checkKey(t.APIKeyEnv, t.APIKeyFile)...)
	return t, errors.Join(f...)
}

// endpointOf returns the endpoint in which a path ends, to which those of lines would be appended;
// empty: it ends in none. Without /v1, a path of one name may be a route of a gateway.
func endpointOf(route string) string {
	route = strings.TrimRight(route, "/")
	for _, endpoint := range Endpoints {
		short := strings.TrimPrefix(endpoint, "/v1")
		if strings.HasSuffix(route, endpoint) ||
			strings.Count(short, "/") > 1 && strings.HasSuffix(route, short) {
			return endpoint
		}
	}
	return ""
}
