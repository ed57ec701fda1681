package console

import (
	"embed"
	"io/fs"
	"net/http"
)

// files are the page. Its URLs are relative, so it also works below a path of a proxy.
//
//go:embed page
var files embed.FS

// policy permits the page its own scripts, styles and requests, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func registerPage(mux *http.ServeMux) {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // "page" is a valid path
	}
	serve := http.FileServerFS(page)
	mux.HandleFunc("GET /console", func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, page, "console.html")
	})
	mux.Handle("GET /console/{file}", http.StripPrefix("/console/", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			setHeaders(w.Header())
			w.Header().Set("Cache-Control", "no-cache")
			serve.ServeHTTP(w, r)
		})))
	for _, path := range []string{"GET /{$}", "GET /console/{$}"} {
		mux.Handle(path, http.RedirectHandler("/console", http.StatusFound))
	}
}

// setHeaders keeps other sites from framing and from embedding an answer, and browsers from taking
// it for something else.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}
