package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/store"
)

// fileForm holds the fields of an upload that were received so far. Fields may be in any order.
type fileForm struct {
	id              string
	purpose         string
	expiry          map[string]string // the fields of expires_after, by name
	filename        string
	file            *intake // nil: not received yet
	idempotencyKey  string
	idempotencyHash hash.Hash
	quota           *quotaReservation
}

func (s *Server) uploadFile(w http.ResponseWriter, r *http.Request) error {
	upload := fileForm{id: newID(filePrefix), expiry: map[string]string{}}
	var err error
	if upload.idempotencyKey, err = idempotencyKeyOf(r); err != nil {
		return err
	}
	if upload.idempotencyKey != "" {
		upload.idempotencyHash = sha256.New()
	}
	body, err := s.readForm(w, r, s.fileLimit(""))
	if err != nil {
		return err
	}
	defer body.close()
	upload.quota = s.openQuota(tenantOf(r.Context()))
	defer upload.quota.release()
	if err := upload.quota.expect(r.Context(), r.ContentLength-formOverhead); err != nil {
		return err
	}
	defer func() {
		if upload.file != nil {
			upload.file.abort()
		}
	}()
	for {
		name, err := body.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.readPart(&upload, body, name)
		}
		if err != nil {
			return err
		}
	}
	file, err := s.keepFile(r.Context(), &upload)
	if err != nil {
		return err
	}
	return writeJSON(w, showFile(file))
}

func (s *Server) readPart(upload *fileForm, body *form, name string) error {
	var err error
	switch name {
	case "file":
		return s.readFile(upload, body)
	case "purpose":
		if upload.purpose, err = body.field(); err == nil {
			err = checkPurpose(upload.purpose)
		}
	case "expires_after", "expires_after[anchor]", "expires_after[seconds]":
		upload.expiry[name], err = body.field()
	}
	return err
}

// readFile receives the file. The field purpose may follow it; until then the file is scanned as if
// its purpose were batch, and the larger limit applies.
func (s *Server) readFile(upload *fileForm, body *form) error {
	if upload.file != nil {
		return invalid("file", "invalid_value",
			"The form has more than one file; upload them one by one.")
	}
	var err error
	if upload.filename, err = body.filename(); err != nil {
		return err
	}
	if upload.filename == "" {
		return invalid("file", "invalid_value",
			"The field 'file' has no filename; send it as a file.")
	}
	if err := checkName(upload.purpose, upload.filename); err != nil {
		return err
	}
	scan := isJSONL(upload.filename) && (upload.purpose == purposeBatch || upload.purpose == "")
	if upload.file, err = s.newIntake(body.r.Context(), fileKey(upload.id), scan,
		upload.idempotencyHash, upload.quota); err != nil {
		return err
	}
	limit := s.fileLimit(upload.purpose)
	err = upload.file.copyFrom(body.r.Context(), body.part, limit)
	s.metrics.uploaded.Add(float64(upload.file.size))
	var source readError
	switch {
	case errors.As(err, &source):
		return body.failure(source.error)
	case errors.Is(err, errOverLimit):
		return fileTooLarge(upload.purpose, limit)
	}
	return err
}

// keepFile checks the complete form and stores its file.
func (s *Server) keepFile(ctx context.Context, upload *fileForm) (store.File, error) {
	if err := checkPurpose(upload.purpose); err != nil {
		return store.File{}, err
	}
	if upload.file == nil {
		return store.File{}, missing("file")
	}
	life, err := readFormExpiry(upload.expiry)
	if err != nil {
		return store.File{}, err
	}
	if err := checkName(upload.purpose, upload.filename); err != nil {
		return store.File{}, err
	}
	in := upload.file
	if limit := s.fileLimit(upload.purpose); in.size > limit {
		return store.File{}, fileTooLarge(upload.purpose, limit)
	}
	if err := in.finish(upload.purpose); err != nil {
		return store.File{}, err
	}
	c := creation[store.File]{Key: upload.idempotencyKey}
	if c.Key != "" {
		c.Fingerprint = fingerprint("file", upload.purpose, upload.filename, life.String(),
			hex.EncodeToString(upload.idempotencyHash.Sum(nil)))
	}
	return s.createFile(ctx, in, c, store.File{ID: upload.id, Purpose: upload.purpose,
		Filename: upload.filename}, life)
}

// fileKey returns the blob key of a file.
func fileKey(id string) string { return "files/" + id }

// commitFile makes the blobs durable and fills in f, of which id, purpose and name are set. The
// file becomes visible when its record is created.
func (s *Server) commitFile(
	ctx context.Context, in *intake, f store.File, life time.Duration,
) (store.File, error) {
	if err := in.commit(ctx); err != nil {
		return store.File{}, err
	}
	f.Tenant = tenantOf(ctx)
	f.Bytes = in.size
	f.CreatedAt = s.now()
	f.ExpiresAt = s.expiry(f.Purpose, f.CreatedAt, life)
	f.BlobKey = in.key
	if in.summary != nil {
		f.IndexKey = in.indexKey()
		f.Summary = in.summary
	}
	return f, nil
}

// createFile commits the blobs and then creates the file's record. It fills in f as commitFile
// does, and c, of which the fields that recognize a repeated request are set.
func (s *Server) createFile(
	ctx context.Context, in *intake, c creation[store.File], f store.File, life time.Duration,
) (store.File, error) {
	f, err := s.commitFile(ctx, in, f, life)
	if err != nil {
		return store.File{}, err
	}
	c.ID = f.ID
	c.Abandon = func(ctx context.Context, id string) error {
		key := fileKey(id)
		return store.RemoveBlobs(ctx, s.meta, s.blobs, "", key, key+indexSuffix)
	}
	c.Create = func(ctx context.Context, _ string) (store.File, error) {
		return f, s.meta.CreateFile(ctx, f)
	}
	c.Load = func(ctx context.Context, id string) (store.File, error) {
		return s.meta.File(ctx, f.Tenant, id)
	}
	kept, fresh, err := createOnce(ctx, s, c)
	if err != nil || !fresh {
		err = errors.Join(err, in.remove(ctx))
	}
	if err != nil {
		return store.File{}, fmt.Errorf("create file %s: %w", f.ID, err)
	}
	return kept, nil
}

// readFormExpiry reads expires_after, which is either two fields or one JSON object.
func readFormExpiry(fields map[string]string) (time.Duration, error) {
	if len(fields) == 0 {
		return 0, nil
	}
	const key = "expires_after"
	raw := json.RawMessage(fields[key])
	if len(raw) == 0 {
		raw = formExpiry(fields[key+"[anchor]"], fields[key+"[seconds]"])
	}
	o := &jsonObject{members: map[string]json.RawMessage{key: raw}, fault: new(error)}
	life := readExpiry(o, key)
	return life, o.finish()
}
