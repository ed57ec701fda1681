package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

type partObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	CreatedAt int64  `json:"created_at"`
	UploadID  string `json:"upload_id"`
}

func partsPrefix(uploadID string) string { return "uploads/" + uploadID }

func (s *Server) addPart(w http.ResponseWriter, r *http.Request) error {
	u, err := s.pendingUpload(r)
	if err != nil {
		return err
	}
	own, err := s.openPart(r.Context(), u)
	if err != nil {
		return err
	}
	defer own.release()
	quota := s.openQuota(u.Tenant)
	defer quota.release()
	if err := quota.expect(r.Context(), r.ContentLength-formOverhead); err != nil {
		return err
	}
	limit := min(s.config().MaxPartBytes, u.Bytes)
	body, err := s.readForm(w, r, limit)
	if err != nil {
		return err
	}
	defer body.close()
	part := store.Part{ID: newID(partPrefix), UploadID: u.ID}
	part.BlobKey = partsPrefix(u.ID) + "/" + part.ID
	in, err := s.takePart(r.Context(), body, part.BlobKey, limit, own, quota)
	if in != nil {
		defer in.abort()
	}
	if err != nil {
		return err
	}
	if err := in.commit(r.Context()); err != nil {
		return err
	}
	part.Bytes, part.CreatedAt = in.size, s.now()
	if err := s.meta.AddPart(r.Context(), part); err != nil {
		err = errors.Join(err, in.remove(r.Context()))
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			return invalid("id", "invalid_value",
				"The upload '%s' ended while its part was received.",
				u.ID)
		}
		return err
	}
	return writeJSON(w, partObject{ID: part.ID,
		Object: "upload.part", CreatedAt: part.CreatedAt.Unix(), UploadID: u.ID})
}

// takePart receives the form's field data and reads the form to its end. The caller must abort the
// intake.
func (s *Server) takePart(
	ctx context.Context, body *form, key string, limit int64, limits ...reserver,
) (in *intake, err error) {
	for {
		name, err := body.next()
		switch {
		case err == io.EOF && in == nil:
			return nil, missing("data")
		case err == io.EOF:
			return in, nil
		case err != nil:
			return in, err
		case name != "data":
			continue
		case in != nil:
			return in, invalid("data", "invalid_value",
				"The form has more than one field 'data'; send parts one by one.")
		}
		if in, err = s.newIntake(ctx, key, false, nil, limits...); err != nil {
			return nil, err
		}
		err = in.copyFrom(ctx, body.part, limit)
		s.metrics.uploaded.Add(float64(in.size))
		var source readError
		switch {
		case errors.As(err, &source):
			return in, body.failure(source.error)
		case errors.Is(err, errOverLimit):
			return in, tooLarge("The part is over the limit of %d bytes.", limit)
		case err != nil:
			return in, err
		}
	}
}

// partReservation reserves bytes of an upload for one of its parts.
type partReservation struct {
	*reservation
	upload store.Upload
}

// maxResends limits the bytes of all parts, as a multiple of the upload's size. Clients send a part
// again if they did not receive the answer.
const maxResends = 2

// openPart returns a reservation for one more part of an upload. It must be released. It is an
// error if the upload has too many parts.
func (s *Server) openPart(ctx context.Context, u store.Upload) (partReservation, error) {
	parts, _, err := s.meta.SumParts(ctx, u.ID)
	if err != nil {
		return partReservation{}, err
	}
	if parts >= maxParts {
		return partReservation{}, invalid("id", "too_many_parts",
			"The upload '%s' has %d parts, which is the limit. Create a new upload and send "+
				"larger parts.", u.ID, parts)
	}
	return partReservation{upload: u, reservation: s.parts.open(u.ID, limit{
		most: maxResends * u.Bytes,
		stored: func(ctx context.Context) (int64, error) {
			_, bytes, err := s.meta.SumParts(ctx, u.ID)
			return bytes, err
		},
	})}, nil
}

// reserve implements reserver.
func (p partReservation) reserve(ctx context.Context, n int64) error {
	used, ok, err := p.reservation.reserve(ctx, n)
	if err != nil || ok {
		return err
	}
	return tooLarge(
		"The parts of the upload '%s' have %d bytes already, and it was created for %d. "+
			"Complete the upload, or cancel it and create a new one.", p.upload.ID, used,
		p.upload.Bytes)
}

// dropParts removes the parts of an ended upload. The sweep retries what it could not remove.
func (s *Server) dropParts(ctx context.Context, uploadID string) {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	if err := s.removeParts(ctx, uploadID); err != nil {
		s.log.WarnContext(ctx, "parts of an upload were not removed; the next sweep retries",
			"upload_id", uploadID,
			"error", err)
	}
}

func (s *Server) removeParts(ctx context.Context, uploadID string) error {
	if err := s.blobs.DeletePrefix(ctx, partsPrefix(uploadID)); err != nil {
		return fmt.Errorf("remove parts of upload %s: %w", uploadID, err)
	}
	return s.meta.DropParts(ctx, uploadID)
}
