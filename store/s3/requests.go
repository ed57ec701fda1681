package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumHeader = "X-Amz-Checksum-Crc32c"

// checksum returns the checksum of a body as S3 writes it.
func checksum(body []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil,
		crc32.Checksum(body, castagnoli)))
}

func (b *Bucket) md5(body []byte) string {
	if b.cfg.Checksum != md5Sum {
		return ""
	}
	sum := md5.Sum(body)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// moving calls moved for each piece that is read.
type moving struct {
	io.Reader
	moved func()
}

func (m *moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.moved()
	return n, err
}

// sending is the body of a request. The transport may read it for a while after the request has
// failed, when the writer uses the buffer again. So it must be ended before.
type sending struct {
	mu   sync.Mutex
	body io.Reader // nil: ended
}

func send(body []byte, moved func()) *sending {
	return &sending{body: &moving{bytes.NewReader(body), moved}}
}

func (s *sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body == nil {
		return 0, io.ErrClosedPipe
	}
	return s.body.Read(p)
}

func (s *sending) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = nil
}

// put stores an object with one request.
func (b *Bucket) put(ctx context.Context, key string, body []byte, onlyNew bool) error {
	opts := minio.PutObjectOptions{ServerSideEncryption: b.encryption, DisableContentSha256: true}
	if b.cfg.Checksum == crc32c {
		opts.UserMetadata = map[string]string{checksumHeader: checksum(body)}
	}
	if onlyNew {
		opts.SetMatchETagExcept("*")
	}
	sum := b.md5(body)
	return b.try(ctx, "put", b.cfg.StallAfter, func(ctx context.Context, moved func()) error {
		sending := send(body, moved)
		defer sending.end()
		_, err := b.core.PutObject(ctx, b.cfg.Bucket, key, sending, int64(len(body)), sum, "",
			opts)
		return err
	})
}

// upload is an object that is written in parts.
type upload struct {
	key   string
	id    string
	parts []minio.CompletePart
	size  int64
}

func (b *Bucket) createUpload(ctx context.Context, key string) (*upload, error) {
	opts := minio.PutObjectOptions{ServerSideEncryption: b.encryption}
	if b.cfg.Checksum == crc32c {
		opts.UserMetadata = map[string]string{"X-Amz-Checksum-Algorithm": "CRC32C"}
	}
	u := &upload{key: key}
	err := b.try(ctx, "create", b.cfg.StallAfter, func(ctx context.Context, _ func()) (err error) {
		u.id, err = b.core.NewMultipartUpload(ctx, b.cfg.Bucket, key, opts)
		return err
	})
	return u, err
}

func (b *Bucket) putPart(ctx context.Context, u *upload, body []byte) error {
	number := len(u.parts) + 1
	part := minio.CompletePart{PartNumber: number}
	opts := minio.PutObjectPartOptions{Md5Base64: b.md5(body), SSE: b.encryption,
		DisableContentSha256: true}
	if b.cfg.Checksum == crc32c {
		part.ChecksumCRC32C = checksum(body)
	}
	err := b.try(ctx, "part", b.cfg.StallAfter, func(ctx context.Context, moved func()) error {
		if part.ChecksumCRC32C != "" {
			opts.CustomHeader = http.Header{checksumHeader: {part.ChecksumCRC32C}}
		}
		sending := send(body, moved)
		defer sending.end()
		done, err := b.core.PutObjectPart(ctx, b.cfg.Bucket, u.key, u.id, number, sending,
			int64(len(body)), opts)
		part.ETag = done.ETag
		return err
	})
	if err == nil {
		u.parts = append(u.parts, part)
		u.size += int64(len(body))
	}
	return err
}

// completeUpload joins the parts.
func (b *Bucket) completeUpload(ctx context.Context, u *upload) error {
	tries := 0
	return b.try(ctx, "complete", joinStalls*b.cfg.StallAfter,
		func(ctx context.Context, _ func()) error {
			tries++
			_, err := b.core.CompleteMultipartUpload(ctx, b.cfg.Bucket, u.key, u.id, u.parts,
				minio.PutObjectOptions{})
			if r, ok := responseOf(err); ok && r.Code == "NoSuchUpload" && tries > 1 {
				return b.completed(ctx, u, err) // an earlier try had no answer
			}
			return err
		})
}

// completed returns nil if the object is the one of the upload, else err.
func (b *Bucket) completed(ctx context.Context, u *upload, err error) error {
	stat, statErr := b.core.StatObject(ctx, b.cfg.Bucket, u.key, minio.StatObjectOptions{})
	if statErr == nil && stat.Size == u.size &&
		strings.HasSuffix(stat.ETag, "-"+strconv.Itoa(len(u.parts))) {
		return nil
	}
	return err
}

func (b *Bucket) abortUpload(ctx context.Context, key, id string) error {
	err := b.try(ctx, "abort", b.cfg.StallAfter, func(ctx context.Context, _ func()) error {
		err := b.core.AbortMultipartUpload(ctx, b.cfg.Bucket, key, id)
		if r, ok := responseOf(err); ok && r.Code == "NoSuchUpload" {
			return nil
		}
		return err
	})
	return err
}

// got describes an object, as a GET has answered.
type got struct {
	size int64 // of the object
	etag string
	body []byte
}

// get reads up to length bytes of an object from an offset on. An etag other than empty must be
// that of the object.
func (b *Bucket) get(
	ctx context.Context, key, etag string, offset, length int64,
) (g got, err error) {
	return b.getInto(ctx, nil, key, etag, offset, length)
}

// getInto is get into a buffer of length bytes; nil: a new one.
func (b *Bucket) getInto(
	ctx context.Context, buffer []byte, key, etag string, offset, length int64,
) (g got, err error) {
	g, err = b.getUnguarded(ctx, buffer, key, etag, offset, length)
	return g, b.explain(ctx, err)
}

// getUnguarded is getInto for objects whose absence says nothing.
func (b *Bucket) getUnguarded(
	ctx context.Context, buffer []byte, key, etag string, offset, length int64,
) (g got, err error) {
	err = b.try(ctx, "get", b.cfg.StallAfter, func(ctx context.Context, moved func()) error {
		g, err = b.getOnce(ctx, moved, buffer, key, etag, offset, length)
		return err
	})
	return g, err
}

func (b *Bucket) getOnce(
	ctx context.Context, moved func(), buffer []byte, key, etag string, offset, length int64,
) (g got, err error) {
	opts := minio.GetObjectOptions{}
	opts.Set("X-Amz-Checksum-Mode", "ENABLED")
	if err := opts.SetRange(offset, offset+length-1); err != nil {
		return g, err
	}
	if etag != "" {
		if err := opts.SetMatchETag(etag); err != nil {
			return g, err
		}
	}
	body, info, header, err := b.core.GetObject(ctx, b.cfg.Bucket, key, opts)
	if err != nil {
		if r, ok := responseOf(err); ok && r.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return got{}, nil // the object ends before the range
		}
		return g, err
	}
	defer body.Close()
	g.etag = info.ETag
	if etag != "" && g.etag != etag { // some storages ignore the condition
		return g, errReplaced
	}
	want, err := g.measure(header, offset, length)
	if err != nil {
		return g, err
	}
	if g.body = buffer; int64(len(buffer)) < want {
		g.body = make([]byte, want)
	}
	g.body = g.body[:want]
	if _, err := io.ReadFull(&moving{body, moved}, g.body); err != nil {
		return g, fmt.Errorf("read %d bytes: %w", want, err)
	}
	if sum := header.Get(checksumHeader); sum != "" && want == g.size &&
		!strings.Contains(sum, "-") && // that of parts
		!strings.EqualFold(header.Get("X-Amz-Checksum-Type"), "COMPOSITE") &&
		sum != checksum(g.body) {
		return g, errDamaged
	}
	return g, nil
}

// measure takes the size of the object from an answer, and returns the number of bytes that follow.
func (g *got) measure(header http.Header, offset, length int64) (want int64, err error) {
	sent, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the answer has no length: %w", err)
	}
	content := header.Get("Content-Range")
	if content == "" { // an empty object, or a storage that ignores the range
		if g.size = sent; offset > 0 {
			return 0, fmt.Errorf("the storage ignores ranges")
		}
		return min(sent, length), nil
	}
	_, total, ok := strings.Cut(content, "/")
	if ok {
		g.size, err = strconv.ParseInt(total, 10, 64)
	}
	if !ok || err != nil || !strings.HasPrefix(content, fmt.Sprintf("bytes %d-", offset)) {
		return 0, fmt.Errorf("the storage answers with the range %q, not from %d on", content,
			offset)
	}
	if expected := min(length, g.size-offset); sent != expected {
		return 0, fmt.Errorf("the storage answers with %d bytes, want %d", sent, expected)
	}
	return sent, nil
}

// maxWhole limits the objects that are read as a whole.
const maxWhole = 64 << 10

// readWhole reads a small object beside the blobs and segments.
func (b *Bucket) readWhole(ctx context.Context, key string) ([]byte, error) {
	g, err := b.getUnguarded(ctx, nil, key, "", 0, maxWhole)
	return g.body, err
}

// listPage lists up to n objects, at most 1,000, whose names start with prefix and are after a
// name.
func (b *Bucket) listPage(
	ctx context.Context, prefix, after string, n int,
) (page []minio.ObjectInfo, err error) {
	err = b.try(ctx, "list", b.cfg.StallAfter, func(ctx context.Context, _ func()) error {
		page = page[:0]
		for o := range b.core.ListObjectsIter(ctx, b.cfg.Bucket, minio.ListObjectsOptions{
			Prefix: prefix, StartAfter: after, Recursive: true, MaxKeys: n}) {
			if o.Err != nil {
				return o.Err
			}
			if page = append(page, o); len(page) == n {
				break
			}
		}
		return nil
	})
	return page, err
}

// remove deletes objects, at most 1,000.
func (b *Bucket) remove(ctx context.Context, keys []string) error {
	if len(keys) == 1 {
		return b.try(ctx, "delete", b.cfg.StallAfter, func(ctx context.Context, _ func()) error {
			err := b.core.RemoveObject(ctx, b.cfg.Bucket, keys[0], minio.RemoveObjectOptions{})
			if r, ok := responseOf(err); ok && r.Code == "NoSuchKey" {
				return nil
			}
			return err
		})
	}
	return b.try(ctx, "delete", b.cfg.StallAfter, func(ctx context.Context, _ func()) error {
		results, err := b.core.RemoveObjectsWithIter(ctx, b.cfg.Bucket,
			func(yield func(minio.ObjectInfo) bool) {
				for _, key := range keys {
					if !yield(minio.ObjectInfo{Key: key}) {
						return
					}
				}
			}, minio.RemoveObjectsOptions{})
		if err != nil {
			return err
		}
		var first error
		for r := range results {
			if re, ok := responseOf(r.Err); ok && re.Code == "NoSuchKey" {
				continue
			}
			if r.Err != nil && first == nil {
				first = r.Err
			}
		}
		return first
	})
}

// listUploads calls each for the objects below the prefix that were begun and not completed.
func (b *Bucket) listUploads(
	ctx context.Context, each func(key, id string, begun time.Time) error,
) error {
	for keyMarker, idMarker := "", ""; ; {
		var page minio.ListMultipartUploadsResult
		err := b.try(ctx, "uploads", b.cfg.StallAfter,
			func(ctx context.Context, _ func()) (err error) {
				page, err = b.core.ListMultipartUploads(ctx, b.cfg.Bucket, b.cfg.Prefix+"/",
					keyMarker, idMarker, "", 1000)
				return err
			})
		if err != nil {
			return err
		}
		for _, u := range page.Uploads {
			if err := each(u.Key, u.UploadID, u.Initiated); err != nil {
				return err
			}
		}
		if !page.IsTruncated || page.NextKeyMarker == "" {
			return nil
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
