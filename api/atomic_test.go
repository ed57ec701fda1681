package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

var errKilled = errors.New("killed")

// crashingStore is a store that fails after a number of writes, as if the process was killed:
// cleaning up fails too.
type crashingStore struct {
	Metadata
	writes int
}

func (m *crashingStore) write() error {
	if m.writes--; m.writes < 0 {
		return errKilled
	}
	return nil
}

func (m *crashingStore) CreateFile(ctx context.Context, f store.File) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Metadata.CreateFile(ctx, f)
}

func (m *crashingStore) PurgeFile(ctx context.Context, id string) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Metadata.PurgeFile(ctx, id)
}

func (m *crashingStore) CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Metadata.CreateBatch(ctx, b, files...)
}

func (m *crashingStore) CompleteUpload(
	ctx context.Context, tenant, id string, f store.File,
) (store.Upload, error) {
	if err := m.write(); err != nil {
		return store.Upload{}, err
	}
	return m.Metadata.CompleteUpload(ctx, tenant, id, f)
}

func (m *crashingStore) DropParts(ctx context.Context, id string) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Metadata.DropParts(ctx, id)
}

func (m *crashingStore) Remember(
	ctx context.Context, tenant, key, value string, ttl time.Duration,
) (string, bool, error) {
	if err := m.write(); err != nil {
		return "", false, err
	}
	return m.Metadata.Remember(ctx, tenant, key, value, ttl)
}

func (m *crashingStore) Forget(ctx context.Context, tenant, key, value string) error {
	if err := m.write(); err != nil {
		return err
	}
	return m.Metadata.Forget(ctx, tenant, key, value)
}

// killed sends a request to a store that fails at each of its writes in turn, then the same request
// to the working store, and calls check with the service after both.
func killed(
	t *testing.T, prepare func(s *service) (path, body string),
	check func(s *service, answer answer),
) {
	for writes := 0; ; writes++ {
		var m *crashingStore
		s := newService(t, diskJournals(t), func(_ *Config, deps *Deps) {
			m = &crashingStore{Metadata: deps.Metadata, writes: 1 << 30}
			deps.Metadata = m
		})
		path, body := prepare(s)
		m.writes = writes
		s.post(path, body, "Idempotency-Key", "k")
		reached := m.writes < 0
		m.writes = 1 << 30
		s.clock.advance(2 * maxCreationTime)
		check(s, s.post(path, body, "Idempotency-Key", "k"))
		if !reached {
			return
		}
	}
}

func TestRetryIsAtomic(t *testing.T) {
	killed(t, func(s *service) (path, body string) {
		id := s.createWith(s.upload(line("a")+line("b")), `{}`).ok()["id"].(string)
		s.end(id, []string{`"a"`})
		return "/v1/batches/" + id + "/retry", ""
	}, func(s *service, answer answer) {
		input := answer.ok()["input_file_id"].(string)
		if got := s.filesNamed("retry-of-"); !slices.Equal(got, []string{input}) {
			t.Errorf("got the files %v, want only %s", got, input)
		}
	})
}

func TestCompletionIsAtomic(t *testing.T) {
	killed(t, func(s *service) (path, body string) {
		content := line("a")
		id := s.post("/v1/uploads", fmt.Sprintf(
			`{"filename":"whole.jsonl","purpose":"batch","bytes":%d,"mime_type":"text/jsonl"}`, len(
				content))).ok()["id"].(string)
		part := s.postForm("/v1/uploads/"+id+"/parts",
			field{name: "data", filename: "x", value: content}).ok()["id"].(string)
		return "/v1/uploads/" + id + "/complete", fmt.Sprintf(`{"part_ids":[%q]}`, part)
	}, func(s *service, answer answer) {
		file := answer.ok()["file"].(map[string]any)["id"].(string)
		if got := s.filesNamed("whole.jsonl"); !slices.Equal(got, []string{file}) {
			t.Errorf("got the files %v, want only %s", got, file)
		}
	})
}

// filesNamed returns the ids of files whose names start with a text.
func (s *service) filesNamed(begin string) (ids []string) {
	s.t.Helper()
	for _, f := range s.get("/v1/files").ok()["data"].([]any) {
		if f := f.(map[string]any); strings.HasPrefix(f["filename"].(string), begin) {
			ids = append(ids, f["id"].(string))
		}
	}
	return ids
}

func TestMIMETypeIsLimited(t *testing.T) {
	s := newService(t)
	create := func(mime string) answer {
		return s.post("/v1/uploads",
			fmt.Sprintf(`{"filename":"a.pdf","purpose":"user_data","bytes":1,"mime_type":%q}`,
				mime))
	}
	create(strings.Repeat("ü", maxMIMEType)).ok()
	create(strings.Repeat("ü", maxMIMEType+1)).refused(400, "mime_type", "invalid_value", "513",
		"512")
}
