package api

import (
	"net/http"

	"github.com/tidefill/tidefill/store"
)

func (s *Server) fileRoutes() {
	s.route("/v1/files", methods{"GET": s.listFiles, "POST": s.limitUploads(s.uploadFile)})
	s.route("/v1/files/{id}", methods{"GET": s.getFile, "DELETE": s.deleteFile})
	s.route("/v1/files/{id}/content", methods{"GET": s.getContent})
}

type fileObject struct {
	ID            string  `json:"id"`
	Object        string  `json:"object"`
	Bytes         int64   `json:"bytes"`
	CreatedAt     int64   `json:"created_at"`
	ExpiresAt     *int64  `json:"expires_at"`
	Filename      string  `json:"filename"`
	Purpose       string  `json:"purpose"`
	Status        string  `json:"status"`
	StatusDetails *string `json:"status_details"`
}

func showFile(f store.File) fileObject {
	return fileObject{
		ID:        f.ID,
		Object:    "file",
		Bytes:     f.Bytes,
		CreatedAt: f.CreatedAt.Unix(),
		ExpiresAt: orNullTime(f.ExpiresAt),
		Filename:  f.Filename,
		Purpose:   f.Purpose,
		Status:    "processed", // files are checked while they are received
	}
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	f, err := s.meta.File(r.Context(), tenantOf(r.Context()), id)
	if err != nil {
		return named(err, "File", id)
	}
	return writeJSON(w, showFile(f))
}
