package registry

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/faults"
)

// Fallback is a server elsewhere, such as a provider in the cloud, that answers what a pool has no
// place for. The zero value is none.
type Fallback struct {
	// URL is the base of a server elsewhere that speaks OpenAI's API, with or without /v1. It gets
	// interactive requests that the pool has no place for in time (inline.enabled), and lines of
	// batches whose deadline can't be met, with their prompts. Empty: none gets any. Default:
	// empty.
	URL string `yaml:"url"`
	// APIKeyEnv names the environment variable that holds the bearer token. Default: empty.
	APIKeyEnv string `yaml:"api_key_env"`
	// APIKeyFile is the absolute path of a file with the bearer token, which is read again when it
	// changes. Default: empty.
	APIKeyFile string `yaml:"api_key_file"`
	// Models maps models of the pool to the names that the server has for them. Other models have
	// no fallback. Required.
	Models map[string]string `yaml:"models"`
	// Headers are added to every request.
	Headers map[string]string `yaml:"headers"`
	// RequestsPerMinute limits the requests, those of lines included. 0: no limit. Default: 0.
	RequestsPerMinute int `yaml:"requests_per_minute"`
	// TokensPerMinute limits the tokens of prompts and answers. 0: no limit. Default: 0.
	TokensPerMinute int `yaml:"tokens_per_minute"`
	// MoneyPerDay limits what a day of UTC costs, in the currency of the prices. 0: no limit. One
	// of the three limits is required. Default: 0.
	MoneyPerDay float64 `yaml:"money_per_day"`
	// PriceInput is the price of a million tokens of prompts. Default: 0.
	PriceInput float64 `yaml:"price_input"`
	// PriceOutput is the price of a million tokens of answers. Default: 0.
	PriceOutput float64 `yaml:"price_output"`
}

// FallbackName returns the name of the fallback's own pool and runner. It is no valid name of a
// configured pool.
func (p Pool) FallbackName() string { return p.Name + "@fallback" }

// isZero reports whether nothing is set.
func (f Fallback) isZero() bool {
	return f.URL == "" && f.APIKeyEnv == "" && f.APIKeyFile == "" && len(f.Models) == 0 &&
		len(f.Headers) == 0 && f.RequestsPerMinute == 0 && f.TokensPerMinute == 0 &&
		f.MoneyPerDay == 0 && f.PriceInput == 0 && f.PriceOutput == 0
}

// validate reports every fault of the fallback of a pool with these models. No text shows the URL
// or a key.
func (f Fallback) validate(models []string) (all faults.List) {
	if f.isZero() {
		return nil
	}
	server, err := url.Parse(f.URL)
	switch {
	case f.URL == "":
		all.Add("url", "is empty, while other keys are set; set it, or remove them")
	case err != nil || server.Scheme != "http" && server.Scheme != "https" || server.Host == "" ||
		server.User != nil:
		all.Add("url", "must be a URL that begins with http:// or https://, without a user")
	case strings.ContainsAny(f.URL, "?#"):
		all.Add("url", "has a query or a fragment, which no request would carry; remove it")
	case endpointOf(server.Path) != "":
		all.Add("url", "ends in %s, an endpoint that requests name; write the base",
			endpointOf(server.Path))
	}
	all = append(all, checkKey(f.APIKeyEnv, f.APIKeyFile)...)
	if len(f.Models) == 0 {
		all.Add("models", "is empty; write the server's name of each model, such as "+
			"{llama-70b: meta/llama-3.3-70b}")
	}
	for _, model := range slices.Sorted(maps.Keys(f.Models)) {
		if !slices.Contains(models, model) {
			all.Add("models."+model, "is no model of the pool; it lists %s",
				strings.Join(models, ", "))
		}
		if strings.TrimSpace(f.Models[model]) == "" {
			all.Add("models."+model, "is empty; write the name that the server has for the model")
		}
	}
	return append(all, f.checkBudget()...)
}

// checkBudget reports what is wrong with the limits and prices.
func (f Fallback) checkBudget() (all faults.List) {
	all.AtLeast("requests_per_minute", f.RequestsPerMinute, 0)
	all.AtLeast("tokens_per_minute", f.TokensPerMinute, 0)
	const most = 1e12
	all.Within("money_per_day", f.MoneyPerDay, 0, most)
	all.Within("price_input", f.PriceInput, 0, most)
	all.Within("price_output", f.PriceOutput, 0, most)
	switch {
	case f.RequestsPerMinute == 0 && f.TokensPerMinute == 0 && f.MoneyPerDay == 0:
		all.Add("money_per_day", "is 0, and so are requests_per_minute and tokens_per_minute; "+
			"set one of them, since nothing else limits what the server costs")
	case f.MoneyPerDay > 0 && f.PriceInput == 0 && f.PriceOutput == 0:
		all.Add("price_input", "is 0, and so is price_output; set them, since money_per_day is "+
			"counted by them")
	}
	return all
}

// checkKey reports what is wrong with the variable or the file of a key. Some write the key itself,
// so no text shows a value.
func checkKey(variableName, file string) (all faults.List) {
	if variableName != "" && (!variable.MatchString(variableName) || looksLikeKey(variableName)) {
		all.Add("api_key_env", "must be the name of an environment variable, not the key")
	}
	if file != "" && (!path.IsAbs(file) || looksLikeKey(file)) {
		all.Add("api_key_file", "must be the absolute path of a file, not the key")
	}
	if variableName != "" && file != "" {
		all = append(all, fmt.Errorf("api_key_file: is set beside api_key_env; remove one"))
	}
	return all
}
