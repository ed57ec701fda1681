package api

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/api/openapi"
)

const (
	// descriptionURL is the only URL of the API that needs no key.
	descriptionURL = "/openapi.json"
	// descriptionCaching lets clients and proxies keep the description for a while: it changes with
	// the release only.
	descriptionCaching = "public, max-age=300"
)

// description is the OpenAPI description of the API.
type description struct {
	json []byte
	etag string
}

func newDescription(version string) (d description, err error) {
	if d.json, err = openapi.JSON(version); err != nil {
		return d, err
	}
	d.etag = fmt.Sprintf(`"%x"`, sha256.Sum256(d.json))
	return d, nil
}

// describe answers GET /openapi.json.
func (s *Server) describe(w http.ResponseWriter, r *http.Request) error {
	d, err := s.description()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", descriptionCaching)
	h.Set("Etag", d.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.json))
	return nil
}
