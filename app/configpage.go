package app

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
)

// serveConfig answers with the configuration that is applied now, without secrets: YAML or, if the
// client asks for it, JSON.
func (a *App) serveConfig(w http.ResponseWriter, r *http.Request) {
	cfg := a.running.Load()
	if strings.Contains(r.Header.Get("Accept"), "application/json") ||
		r.URL.Query().Get("format") == "json" {
		text, err := cfg.ShownJSON()
		writePage(w, "application/json", append(text, '\n'), err)
		return
	}
	var page bytes.Buffer
	page.WriteString("# The configuration that is applied now, without secrets.\n")
	for _, c := range *a.reloads.notApplied.Load() {
		row := strings.Join(strings.Fields(c.String()), " ")
		fmt.Fprintf(&page, "# Restart to apply: %s\n", row)
	}
	text, err := cfg.ShownYAML()
	page.Write(text)
	writePage(w, "application/yaml", page.Bytes(), err)
}

func writePage(w http.ResponseWriter, contentType string, page []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Write(page)
}
