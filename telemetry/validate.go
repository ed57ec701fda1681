package telemetry

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// validateAccess reports faults of the URL, the credentials, the headers and the certificates. It
// never repeats a URL that may hold a password or a token.
func (p Prometheus) validateAccess() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("prometheus."+format, args...))
	}
	scheme := ""
	switch parsed, err := url.Parse(p.URL); {
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		shown := p.URL
		if strings.ContainsAny(shown, "@?") {
			shown = "the value"
		}
		refuse("url: %q is no URL; write http://host:port", shown)
	case parsed.User != nil:
		refuse("url: has a user or a password, which logs would show; use basic_auth")
	case parsed.RawQuery != "" || parsed.Fragment != "":
		refuse("url: has a part after ? or #, which is not sent; write http://host:port/path, " +
			"and credentials into the file of token_file or basic_auth.password_file")
	default:
		scheme = parsed.Scheme
	}
	basic := p.BasicAuth
	switch {
	case p.TokenEnv != "" && p.TokenFile != "":
		refuse("token_file: is given beside token_env; remove one of them")
	case basic != BasicAuth{} && (p.TokenEnv != "" || p.TokenFile != ""):
		refuse("basic_auth: is given beside a token; remove one of them")
	case basic != BasicAuth{} && basic.Username == "":
		refuse("basic_auth.username: is empty; set it or remove the password")
	case strings.Contains(basic.Username, ":") || hasControl(basic.Username):
		refuse("basic_auth.username: has a colon or a control character, which no name may have")
	case basic.Username != "" && (basic.PasswordEnv == "") == (basic.PasswordFile == ""):
		refuse("basic_auth.password_file: is %q and password_env %q; give one of them",
			basic.PasswordFile, basic.PasswordEnv)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !isHeaderName(name):
			refuse("headers: %q is no name of a header; use letters, digits and '-'", name)
		case canonical == "Authorization":
			refuse("headers.%s: would be shown by check; use token_file or basic_auth", name)
		case canonical == "Host" || canonical == "Content-Type" || canonical == "Content-Length":
			refuse("headers.%s: is set by every query; remove it", name)
		case hasControl(p.Headers[name]):
			refuse("headers.%s: has a control character, such as a newline; remove it", name)
		}
	}
	if err := p.TLS.validate(scheme); scheme != "" && err != nil {
		refuse("%w", err)
	}
	return errors.Join(faults...)
}

// isHeaderName reports whether a name is a token: RFC 9110, section 5.6.2.
func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
