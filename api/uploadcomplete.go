package api

import (
	"context"
	"crypto/md5" // required by the API; it detects accidents, not attacks
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// completion is the body of a request that completes an upload.
type completion struct {
	partIDs []string // in the order of the file
	md5     []byte   // nil: not given
}

// completeUpload joins the parts into a file. A repetition of a successful request, such as SDKs
// send when they did not receive the answer, gets the same answer.
func (s *Server) completeUpload(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	u, err := s.pendingUpload(r)
	if err != nil {
		if u.State == store.UploadCompleted {
			return s.writeUpload(ctx, w, u)
		}
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	c, err := readCompletion(body)
	if err != nil {
		return err
	}
	if err := enterGate(w, r, &s.gates.copies); err != nil {
		return err
	}
	ended, err := s.complete(ctx, u, c)
	if err != nil {
		// The same request may have succeeded meanwhile: users repeat those that are cut.
		if now, loadErr := s.meta.Upload(ctx, u.Tenant, u.ID); loadErr == nil &&
			now.State == store.UploadCompleted {
			return s.writeUpload(ctx, w, now)
		}
		return err
	}
	s.dropParts(ctx, u.ID)
	return s.writeUpload(ctx, w, ended)
}

func (s *Server) complete(
	ctx context.Context, u store.Upload, c completion,
) (ended store.Upload, err error) {
	parts, err := s.chosenParts(ctx, u, c.partIDs)
	if err != nil {
		return u, err
	}
	return s.join(ctx, u, parts, c.md5)
}

func readCompletion(body []byte) (c completion, err error) {
	o, err := readObject(body)
	if err != nil {
		return c, err
	}
	if !o.has("part_ids") {
		o.fail("part_ids", "missing_required_parameter", "Missing required parameter: 'part_ids'.")
	}
	elements, _ := o.list("part_ids", maxParts)
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		var id string
		if json.Unmarshal(element, &id) != nil || id == "" {
			o.wrongType(fmt.Sprintf("part_ids[%d]", i), "the id of a part", element)
		}
		if seen[id] {
			o.wrongValue("part_ids", "the part %s occurs more than once.", quoted(id))
		}
		seen[id] = true
		c.partIDs = append(c.partIDs, id)
	}
	if text, ok := o.text("md5"); ok {
		if c.md5, err = hex.DecodeString(strings.TrimSpace(text)); err != nil ||
			len(c.md5) != md5.Size {
			o.wrongValue("md5", "expected %d hex digits.", 2*md5.Size)
		}
	}
	return c, o.finish()
}

// chosenParts returns the parts in the order of ids, if their sizes add up to that of the upload.
func (s *Server) chosenParts(
	ctx context.Context, u store.Upload, ids []string,
) ([]store.Part, error) {
	have, err := s.meta.Parts(ctx, u.ID)
	if err != nil {
		return nil, fmt.Errorf("complete upload %s: %w", u.ID, err)
	}
	byID := make(map[string]store.Part, len(have))
	for _, p := range have {
		byID[p.ID] = p
	}
	chosen, total := make([]store.Part, 0, len(ids)), int64(0)
	for _, id := range ids {
		p, ok := byID[id]
		if !ok {
			return nil, invalid("part_ids", "invalid_value", "The upload has no part %s.",
				quoted(id))
		}
		chosen, total = append(chosen, p), total+p.Bytes
	}
	if total != u.Bytes {
		return nil, invalid("part_ids", "invalid_value",
			"The parts have %d bytes together; the upload was created for %d.",
			total, u.Bytes)
	}
	return chosen, nil
}

// join writes the parts into a file, checking it as an upload in one piece, and completes the
// upload with it.
func (s *Server) join(
	ctx context.Context, u store.Upload, parts []store.Part, want []byte,
) (store.Upload, error) {
	var sum hash.Hash
	if want != nil {
		sum = md5.New()
	}
	id := newID(filePrefix)
	in, err := s.newIntake(ctx, fileKey(id), u.Purpose == purposeBatch, sum)
	if err != nil {
		return u, err
	}
	defer in.abort()
	for _, p := range parts {
		if err := s.appendPart(ctx, in, p); err != nil {
			return u, err
		}
	}
	if want != nil && string(sum.Sum(nil)) != string(want) {
		return u, invalid("md5", "invalid_value",
			"The file's md5 is %x, which differs from the one in the request; upload the parts "+
				"again.", sum.Sum(nil))
	}
	if err := in.finish(u.Purpose); err != nil {
		return u, err
	}
	f, err := s.commitFile(ctx, in, store.File{ID: id, Purpose: u.Purpose, Filename: u.Filename},
		u.FileLife)
	if err != nil {
		return u, err
	}
	completed, err := s.meta.CompleteUpload(ctx, u.Tenant, u.ID, f)
	if err != nil {
		err = errors.Join(err, in.remove(ctx))
	}
	if errors.Is(err, store.ErrConflict) {
		return u, &httpError{
			Status: http.StatusConflict, Type: invalidRequest, Code: "conflict",
			Message: "The upload was cancelled, or expired, while it was being completed; create " +
				"a new one.",
		}
	}
	return completed, err
}

func (s *Server) appendPart(ctx context.Context, in *intake, p store.Part) error {
	blob, err := s.blobs.Open(ctx, p.BlobKey)
	if errors.Is(err, store.ErrNotFound) {
		return invalid("part_ids", "invalid_value",
			"The upload ended while it was being completed.")
	}
	if err != nil {
		return fmt.Errorf("read part %s: %w", p.ID, err)
	}
	defer blob.Close()
	if err := in.copyFrom(ctx, io.NewSectionReader(blob, 0, blob.Size()), p.Bytes); err != nil {
		return fmt.Errorf("append part %s: %w", p.ID, err)
	}
	return ctx.Err()
}
