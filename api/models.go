package api

import (
	"net/http"
	"slices"
	"time"
)

// ModelInfo is a model that the upstreams serve.
type ModelInfo struct {
	ID      string
	Created time.Time // zero: unknown
	OwnedBy string
}

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (m ModelInfo) object() modelObject {
	o := modelObject{ID: m.ID, Object: "model", OwnedBy: m.OwnedBy}
	if !m.Created.IsZero() {
		o.Created = m.Created.Unix()
	}
	return o
}

func (s *Server) listModels(w http.ResponseWriter, r *http.Request) error {
	data := []modelObject{}
	for _, m := range s.models(r) {
		data = append(data, m.object())
	}
	return writeJSON(w, struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", data})
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	models := s.models(r)
	i := slices.IndexFunc(models, func(m ModelInfo) bool { return m.ID == id })
	if i < 0 {
		return &httpError{
			Status: http.StatusNotFound, Type: invalidRequest,
			Code: "model_not_found", Param: "model",
			Message: "No upstream serves a model named '" + id + "' at present.",
		}
	}
	return writeJSON(w, models[i].object())
}
