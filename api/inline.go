package api

import (
	"net/http"
	"slices"
)

// Inline serves the interactive requests that pass through this process.
//
// Serve answers a POST to one of the inlineURLs; tenant is the sender's. The request has passed
// the keys and the rate limit, but none of the gates: Serve limits what runs at once. Its context
// ends when the sender's key is revoked. If the context ends before the answer has begun, Serve
// writes nothing and returns the cause, which the server answers. Serve calls moved before it
// passes the request on to another process, which checks the key and counts the request too.
//
// Models returns the names of the models that Serve knows for a tenant beside those that upstreams
// list.
type Inline interface {
	Serve(w http.ResponseWriter, r *http.Request, tenant string, moved func()) error
	Models(tenant string) []string
}

// inlineURLs are the URLs of interactive requests.
var inlineURLs = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses",
	"/v1/embeddings", "/v1/rerank", "/v1/score", "/v1/moderations"}

func (s *Server) inlineRoutes() {
	if s.deps.Inline == nil {
		return
	}
	for _, url := range inlineURLs {
		s.route(url, methods{"POST": func(w http.ResponseWriter, r *http.Request) error {
			ctx := r.Context()
			return s.deps.Inline.Serve(w, r, tenantOf(ctx), func() { s.uncount(ctx) })
		}})
	}
}

// isInline reports whether a request is interactive. The gates do not limit these.
func (s *Server) isInline(r *http.Request) bool {
	return s.deps.Inline != nil && slices.Contains(inlineURLs, r.URL.Path)
}

// models returns what upstreams list, and the models of Inline that these do not list.
func (s *Server) models(r *http.Request) []ModelInfo {
	models := s.deps.Models()
	if s.deps.Inline == nil {
		return models
	}
	models = slices.Clone(models)
	for _, name := range s.deps.Inline.Models(tenantOf(r.Context())) {
		if !slices.ContainsFunc(models, func(m ModelInfo) bool { return m.ID == name }) {
			models = append(models, ModelInfo{ID: name, OwnedBy: "tidefill"})
		}
	}
	return models
}
