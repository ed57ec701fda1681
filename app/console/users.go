package console

import (
	"io/fs"
	"net/http"
	"strings"
)

// WithUsersPage adds the page of users to the API's address, at "/" for browsers. The page calls
// the API with the key that its user types in. All else is the API's.
func WithUsersPage(api http.Handler) http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // "page" is a valid path
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, isFile := strings.CutPrefix(r.URL.Path, "/page/")
		if isFile {
			info, err := fs.Stat(page, path)
			isFile = err == nil && !info.IsDir()
		}
		first := r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html")
		if r.Method != http.MethodGet && r.Method != http.MethodHead || !first && !isFile {
			api.ServeHTTP(w, r)
			return
		}
		setHeaders(w.Header())
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Vary", "Accept")
		if first {
			path = "users.html"
		}
		http.ServeFileFS(w, r, page, path)
	})
}
