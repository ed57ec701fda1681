package emulator

import (
	"net/http"
	"slices"

	"github.com/tidefill/tidefill/simulator/engine"
)

type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"`
}

func (s *Server) model(id string) model {
	return model{ID: id, Object: "model", Created: s.started.Unix(),
		OwnedBy: "tidefill", MaxModelLen: s.contextLength()}
}

// contextLength returns the largest prompt plus output, in tokens.
func (s *Server) contextLength() int {
	switch {
	case s.loop != nil:
		return s.loop.engine.MaxModelLen()
	case s.config.MaxModelLen > 0:
		return s.config.MaxModelLen
	}
	return instantBlocks * engine.BlockSize
}

// served lists the models that are not refused.
func (s *Server) served() []string {
	return slices.DeleteFunc(slices.Clone(s.config.Models), s.injector.refuses)
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, id := range s.served() {
		list.Data = append(list.Data, s.model(id))
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("model")
	if !slices.Contains(s.served(), id) {
		notFound(id).write(w)
		return
	}
	writeJSON(w, http.StatusOK, s.model(id))
}
