package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/tidefill/tidefill/store"
)

// Limits on the records of one tenant. They protect against abuse and faulty loops, so concurrent
// requests may exceed them by a few.
const (
	maxParts          = 10_000
	maxPendingUploads = 1_000
)

// maxMIMEType is the longest MIME type of RFC 6838, two names of 127 characters, and some more for
// parameters.
const maxMIMEType = 512

func (s *Server) uploadRoutes() {
	s.route("/v1/uploads", methods{"POST": s.createUpload})
	s.route("/v1/uploads/{id}/parts", methods{"POST": s.limitUploads(s.addPart)})
	s.route("/v1/uploads/{id}/complete", methods{"POST": s.completeUpload})
	s.route("/v1/uploads/{id}/cancel", methods{"POST": s.cancelUpload})
}

type uploadObject struct {
	ID        string      `json:"id"`
	Object    string      `json:"object"`
	Bytes     int64       `json:"bytes"`
	CreatedAt int64       `json:"created_at"`
	ExpiresAt int64       `json:"expires_at"`
	Filename  string      `json:"filename"`
	Purpose   string      `json:"purpose"`
	Status    string      `json:"status"`
	File      *fileObject `json:"file"`
}

// showUpload returns an upload in OpenAI's format, with its file once it is completed.
func (s *Server) showUpload(ctx context.Context, u store.Upload) (uploadObject, error) {
	shown := uploadObject{
		ID:        u.ID,
		Object:    "upload",
		Bytes:     u.Bytes,
		CreatedAt: u.CreatedAt.Unix(),
		ExpiresAt: u.ExpiresAt.Unix(),
		Filename:  u.Filename,
		Purpose:   u.Purpose,
		Status:    string(u.State),
	}
	if u.State != store.UploadCompleted {
		return shown, nil
	}
	f, err := s.meta.File(ctx, u.Tenant, u.FileID)
	switch {
	case errors.Is(err, store.ErrNotFound): // the file was deleted
	case err != nil:
		return shown, fmt.Errorf("show upload %s: %w", u.ID, err)
	default:
		file := showFile(f)
		shown.File = &file
	}
	return shown, nil
}

func (s *Server) writeUpload(ctx context.Context, w http.ResponseWriter, u store.Upload) error {
	shown, err := s.showUpload(ctx, u)
	if err != nil {
		return err
	}
	return writeJSON(w, shown)
}

func (s *Server) createUpload(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKeyOf(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	u, err := s.readUpload(body)
	if err != nil {
		return err
	}
	ctx := r.Context()
	u.ID = newID(uploadPrefix)
	u.Tenant = tenantOf(ctx)
	u.State = store.UploadPending
	u.CreatedAt = s.now()
	u.ExpiresAt = u.CreatedAt.Add(s.config().UploadTimeout)
	made, _, err := createOnce(ctx, s, creation[store.Upload]{
		Key:         key,
		Fingerprint: fingerprint("upload", string(body)),
		ID:          u.ID,
		Create: func(ctx context.Context, id string) (store.Upload, error) {
			if err := s.checkPending(ctx, u.Tenant); err != nil {
				return u, err
			}
			u.ID = id
			return u, s.meta.CreateUpload(ctx, u)
		},
		Load: func(ctx context.Context, id string) (store.Upload, error) {
			return s.meta.Upload(ctx, u.Tenant, id)
		},
	})
	if err != nil {
		return fmt.Errorf("create upload: %w", err)
	}
	return s.writeUpload(ctx, w, made)
}

// readUpload reads the body of a create request and checks what can be checked before the upload.
func (s *Server) readUpload(body []byte) (store.Upload, error) {
	o, err := readObject(body)
	if err != nil {
		return store.Upload{}, err
	}
	u := store.Upload{Filename: o.required("filename"), Purpose: o.required("purpose")}
	u.MIMEType, _ = o.text("mime_type")
	if n := utf8.RuneCountInString(u.MIMEType); n > maxMIMEType {
		o.wrongValue("mime_type", "it has %d characters, at most %d are allowed.", n, maxMIMEType)
	}
	u.FileLife = readExpiry(o, "expires_after")
	if !o.has("bytes") {
		o.fail("bytes", "missing_required_parameter", "Missing required parameter: 'bytes'.")
	}
	// OpenAI's limit; that of the purpose is checked below
	u.Bytes = o.integer("bytes", 1, 8<<30, 0)
	if err := o.finish(); err != nil {
		return store.Upload{}, err
	}
	if err := checkPurpose(u.Purpose); err != nil {
		return store.Upload{}, err
	}
	if u.Filename, err = cleanFilename(u.Filename); err != nil {
		return store.Upload{}, err
	}
	if u.Filename == "" {
		return store.Upload{}, invalid("filename", "invalid_value",
			"Invalid 'filename': it is not the name of a file.")
	}
	if err := checkName(u.Purpose, u.Filename); err != nil {
		return store.Upload{}, err
	}
	if limit := s.fileLimit(u.Purpose); u.Bytes > limit {
		return store.Upload{}, fileTooLarge(u.Purpose, limit)
	}
	return u, nil
}

// checkPending returns an error if the tenant has too many pending uploads.
func (s *Server) checkPending(ctx context.Context, tenant string) error {
	pending, err := s.meta.CountPending(ctx, tenant)
	if err != nil || pending < maxPendingUploads {
		return err
	}
	e := invalid("", "too_many_uploads",
		"You have %d pending uploads, which is the limit. Complete or cancel some; the others "+
			"expire %v after their creation.",
		pending, s.config().UploadTimeout)
	// a retry within seconds would not help
	e.Status, e.NoRetry = http.StatusTooManyRequests, true
	return e
}

// pendingUpload returns the upload that the path names, and an error if it has ended.
func (s *Server) pendingUpload(r *http.Request) (store.Upload, error) {
	id := r.PathValue("id")
	u, err := s.meta.Upload(r.Context(), tenantOf(r.Context()), id)
	if err != nil {
		return u, named(err, "Upload", id)
	}
	if u.State != store.UploadPending {
		return u, uploadEnded(u)
	}
	return u, nil
}

func uploadEnded(u store.Upload) *httpError {
	return invalid("id", "invalid_value",
		"The upload '%s' is %s; only a pending one can be changed. Create a new one.", u.ID,
		u.State)
}

func (s *Server) cancelUpload(w http.ResponseWriter, r *http.Request) error {
	id, ctx := r.PathValue("id"), r.Context()
	u, err := s.meta.CancelUpload(ctx, tenantOf(ctx), id)
	if errors.Is(err, store.ErrConflict) {
		if u, err = s.meta.Upload(ctx, tenantOf(ctx), id); err == nil &&
			u.State != store.UploadCancelled {
			err = uploadEnded(u)
		}
	}
	if err != nil {
		return named(err, "Upload", id)
	}
	s.dropParts(ctx, u.ID)
	return s.writeUpload(ctx, w, u)
}
