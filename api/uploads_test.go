package api

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func (s *service) createUpload(bytes int, more string) string {
	s.t.Helper()
	return s.post("/v1/uploads", fmt.Sprintf(
		`{"filename":"in.jsonl","purpose":"batch","mime_type":"application/jsonl","bytes":%d%s}`,
		bytes, more)).ok()["id"].(string)
}

func (s *service) addPart(upload, content string) string {
	s.t.Helper()
	part := s.postForm("/v1/uploads/"+upload+"/parts",
		field{name: "data", filename: "blob", value: content}).ok()
	if part["object"] != "upload.part" || part["upload_id"] != upload ||
		part["created_at"] != float64(s.clock.now().Unix()) {
		s.t.Errorf("got part %v", part)
	}
	return part["id"].(string)
}

func (s *service) complete(upload string, sum string, parts ...string) answer {
	s.t.Helper()
	body := map[string]any{"part_ids": parts}
	if sum != "" {
		body["md5"] = sum
	}
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.post("/v1/uploads/"+upload+"/complete", string(text))
}

func TestUploadInParts(t *testing.T) {
	s := newService(t)
	content := strings.Repeat(line("a"), 1) + line("b") + line("c")
	sum := fmt.Sprintf("%X", md5.Sum([]byte(content)))
	created := s.post("/v1/uploads", fmt.Sprintf(`{"filename":"in.jsonl","purpose":"batch","mime_type":"text/jsonl","bytes":%d,
		"expires_after":{"anchor":"created_at","seconds":7200}}`, len(content))).ok()
	now := float64(s.clock.now().Unix())
	for key, want := range map[string]any{
		"object": "upload", "bytes": float64(len(content)), "created_at": now,
		"expires_at": now + 3600,
		"filename":   "in.jsonl", "purpose": "batch", "status": "pending", "file": nil,
	} {
		if v, there := created[key]; !there || v != want {
			t.Errorf("got %s %v, want %v", key, v, want)
		}
	}
	id := created["id"].(string)
	// In parallel, and divided in the middle of lines.
	pieces := []string{content[:50], content[50:200], content[200:]}
	ids := make([]string, len(pieces))
	var senders sync.WaitGroup
	for i, piece := range pieces {
		senders.Go(func() { ids[i] = s.addPart(id, piece) })
	}
	senders.Wait()
	s.addPart(id, "left out")
	done := s.complete(id, sum, ids...).ok()
	if done["status"] != "completed" {
		t.Errorf("got status %v, want completed", done["status"])
	}
	file := done["file"].(map[string]any)
	if file["bytes"] != float64(len(content)) || file["purpose"] != "batch" ||
		file["expires_at"] != now+7200 {
		t.Errorf("got file %v", file)
	}
	fileID := file["id"].(string)
	s.get("/v1/files/" + fileID + "/content").isWhole(content)
	f, err := s.meta.File(t.Context(), DefaultTenant, fileID)
	if err != nil || f.Summary == nil || f.Summary.Lines != 3 || f.Summary.FaultCount != 0 {
		t.Errorf("got summary %+v, %v; want 3 lines without faults", f.Summary, err)
	}
	if stored := s.stored(); len(stored) != 2 {
		t.Errorf("got %v stored, want the file and its index", stored)
	}
	if again := s.complete(id, sum, ids...).ok(); again["file"].(map[string]any)["id"] != fileID {
		t.Errorf("completed again, got %v, want the same file", again)
	}
	s.post("/v1/uploads/"+id+"/cancel", "").refused(400, "id", "invalid_value", "completed")
	s.postForm("/v1/uploads/"+id+"/parts", field{name: "data", value: "x"}).refused(400, "id",
		"invalid_value", "completed")
	s.do("DELETE", "/v1/files/"+fileID, nil).ok()
	if again := s.complete(id, sum, ids...).ok(); again["file"] != nil {
		t.Errorf("got file %v after its deletion, want null", again["file"])
	}
	s.nothingStored()
}

func TestCreateUploadRefused(t *testing.T) {
	s := newService(t)
	for body, test := range map[string]struct {
		status      int
		param, code string
	}{
		``:  {400, "", "invalid_json"},
		`{`: {400, "", "invalid_json"},
		`{"purpose":"batch","bytes":1,"mime_type":"x"}`: {
			400, "filename", "missing_required_parameter"},
		`{"filename":"a.jsonl","bytes":1,"mime_type":"x"}`: {
			400, "purpose", "missing_required_parameter"},
		`{"filename":"a.jsonl","purpose":"batch","mime_type":"x"}`: {
			400, "bytes", "missing_required_parameter"},
		`{"filename":"a.jsonl","purpose":"fun","bytes":1,"mime_type":"x"}`: {
			400, "purpose", "invalid_value"},
		`{"filename":"a.json","purpose":"batch","bytes":1,"mime_type":"x"}`: {
			400, "file", "invalid_value"},
		`{"filename":"/","purpose":"evals","bytes":1,"mime_type":"x"}`: {
			400, "filename", "invalid_value"},
		`{"filename":"a.jsonl","purpose":"batch","bytes":0,"mime_type":"x"}`: {
			400, "bytes", "invalid_value"},
		`{"filename":"a.jsonl","purpose":"batch","bytes":1.5,"mime_type":"x"}`: {
			400, "bytes", "invalid_type"},
		`{"filename":"a.jsonl","purpose":"batch","bytes":209715201,"mime_type":"x"}`: {
			413, "", ""},
		`{"filename":"a.jsonl","purpose":"batch","bytes":1,"mime_type":"x","size":1}`: {
			400, "size", "unknown_parameter"},
		`{"filename":"a.jsonl","purpose":"batch","bytes":1,"mime_type":"x","expires_after":1}`: {
			400, "expires_after", "invalid_type"},
	} {
		t.Log(body)
		s.post("/v1/uploads", body).refused(test.status, test.param, test.code)
	}
}

func TestPartRefused(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.MaxPartBytes = 1000 })
	id := s.createUpload(5000, "")
	parts := "/v1/uploads/" + id + "/parts"
	s.postForm(parts, field{name: "data", value: strings.Repeat("x", 1001)}).refused(413, "", "",
		"1000")
	s.postForm(parts, field{name: "file", value: "x"}).refused(400, "data",
		"missing_required_parameter")
	s.postForm(parts, field{name: "data", value: "x"}, field{name: "data", value: "y"}).refused(400,
		"data", "invalid_value")
	s.post(parts, `{}`).refused(400, "", "")
	s.postForm("/v1/uploads/upload_none/parts", field{name: "data", value: "x"}).refused(404, "id",
		"", "No such Upload object: upload_none")
	body, contentType := encodeForm(t, field{name: "data", value: strings.Repeat("x", 500)})
	s.do("POST", parts, strings.NewReader(body.String()[:300]),
		"Content-Type", contentType).refused(400, "", "", "closing boundary")
	s.nothingStored()
}

func TestCompleteRefused(t *testing.T) {
	s := newService(t)
	content := line("a")
	id, other := s.createUpload(len(content), ""), s.createUpload(len(content), "")
	a, b, foreign := s.addPart(id, content[:40]), s.addPart(id, content[40:]),
		s.addPart(other, content[40:])
	complete := "/v1/uploads/" + id + "/complete"
	s.post(complete, `{}`).refused(400, "part_ids", "missing_required_parameter")
	s.post(complete, `{"part_ids":"x"}`).refused(400, "part_ids", "invalid_type")
	s.post(complete, `{"part_ids":[]}`).refused(400, "part_ids", "invalid_value")
	s.post(complete, `{"part_ids":[1]}`).refused(400, "part_ids[0]", "invalid_type")
	s.complete(id, "", a, a).refused(400, "part_ids", "invalid_value", "more than once")
	s.complete(id, "", a, foreign).refused(400, "part_ids", "invalid_value", foreign)
	s.complete(id, "", a).refused(400, "part_ids", "invalid_value", fmt.Sprint(len(content)))
	s.complete(id, "nonsense", a, b).refused(400, "md5", "invalid_value")
	s.complete(id, fmt.Sprintf("%x", md5.Sum([]byte(content))), b, a).refused(400, "md5",
		"invalid_value", "md5")
	s.complete("upload_none", "", a).refused(404, "id", "", "No such Upload object: upload_none")
	if stored := s.stored(); len(stored) != 3 {
		t.Errorf("got %v stored, want the three parts", stored)
	}
	s.complete(id, fmt.Sprintf("%x", md5.Sum([]byte(content))), a, b).ok()
}

// The same completion sent several times at once has one result, which all get.
func TestCompletionsRace(t *testing.T) {
	s := newService(t)
	content := line("a")
	id := s.createUpload(len(content), "")
	part := s.addPart(id, content)
	answers := make(chan answer)
	for range 4 {
		go func() { answers <- s.complete(id, "", part) }()
	}
	files := map[any]bool{}
	for range 4 {
		files[(<-answers).ok()["file"].(map[string]any)["id"]] = true
	}
	if len(files) != 1 {
		t.Errorf("got files %v, want one", files)
	}
	if listed := s.get("/v1/files").ok()["data"].([]any); len(listed) != 1 {
		t.Errorf("got %v listed, want one file", listed)
	}
	if stored := s.stored(); len(stored) != 2 {
		t.Errorf("got %v stored, want the file and its index", stored)
	}
}

func TestUploadCancelled(t *testing.T) {
	s := newService(t)
	id := s.createUpload(100, "")
	part := s.addPart(id, "x")
	for range 2 { // a repeated cancel answers the same
		if got := s.do("POST", "/v1/uploads/"+id+"/cancel",
			nil).ok(); got["status"] != "cancelled" || got["file"] != nil {
			t.Errorf("got %v, want it cancelled", got)
		}
	}
	s.nothingStored()
	s.postForm("/v1/uploads/"+id+"/parts", field{name: "data", value: "x"}).refused(400, "id",
		"invalid_value", "cancelled")
	s.complete(id, "", part).refused(400, "id", "invalid_value", "cancelled")
	s.post("/v1/uploads/upload_none/cancel", "").refused(404, "id", "",
		"No such Upload object: upload_none")
	s.nothingStored()
}

func TestUploadExpires(t *testing.T) {
	s := newService(t)
	id := s.createUpload(1, "")
	part := s.addPart(id, "x")
	s.clock.advance(time.Hour)
	s.complete(id, "", part).refused(400, "id", "invalid_value", "expired")
	s.postForm("/v1/uploads/"+id+"/parts", field{name: "data", value: "x"}).refused(400, "id",
		"invalid_value", "expired")
	s.sweep()
	s.nothingStored()
}

func TestUploadIsTheTenants(t *testing.T) {
	keys, err := ParseKeys("a=key-a,b=key-b")
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(_ *Config, d *Deps) { d.Keys = keys })
	id := s.post(
		"/v1/uploads", `{"filename":"a.jsonl","purpose":"batch","bytes":1,"mime_type":"x"}`,
		"Authorization", "Bearer key-a").ok()["id"].(string)
	for _, action := range []string{"parts", "complete", "cancel"} {
		s.post("/v1/uploads/"+id+"/"+action, `{"part_ids":["x"]}`, "Authorization",
			"Bearer key-b").refused(404, "id", "", id)
	}
}

func TestUploadCreationIdempotency(t *testing.T) {
	s := newService(t)
	const body = `{"filename":"a.jsonl","purpose":"batch","bytes":1,"mime_type":"x"}`
	first := s.post("/v1/uploads", body, "Idempotency-Key", "k").ok()["id"]
	if again := s.post("/v1/uploads", body, "Idempotency-Key", "k").ok()["id"]; again != first {
		t.Errorf("got %v again, want %v", again, first)
	}
	s.post("/v1/uploads", strings.Replace(body, "1", "2", 1), "Idempotency-Key", "k").refused(400,
		"", "idempotency_key_reuse")
}

// extraCounts adds numbers of uploads and parts to those that are counted.
type extraCounts struct {
	Metadata
	uploads, parts int
}

func (c *extraCounts) CountPending(ctx context.Context, tenant string) (int, error) {
	n, err := c.Metadata.CountPending(ctx, tenant)
	return c.uploads + n, err
}

func (c *extraCounts) SumParts(ctx context.Context, uploadID string) (int, int64, error) {
	n, bytes, err := c.Metadata.SumParts(ctx, uploadID)
	return c.parts + n, bytes, err
}

func TestUploadsAreBounded(t *testing.T) {
	meta := &extraCounts{uploads: maxPendingUploads - 1, parts: maxParts - 1}
	s := newService(t, func(_ *Config, d *Deps) {
		meta.Metadata = d.Metadata
		d.Metadata = meta
	})
	const body = `{"filename":"in.jsonl","purpose":"batch","mime_type":"application/jsonl","bytes":9}`
	last := s.post("/v1/uploads", body, "Idempotency-Key", "k").ok()["id"].(string)
	refused := s.post("/v1/uploads", body, "Idempotency-Key", "k2")
	refused.refused(429, "", "too_many_uploads", "1000 pending uploads")
	if refused.header.Get("X-Should-Retry") != "false" {
		t.Error("SDKs would retry at once")
	}
	if again := s.post("/v1/uploads", body, "Idempotency-Key", "k").ok()["id"]; again != last {
		t.Errorf("got %v for a repeated request, want %s", again, last)
	}

	s.addPart(last, "abc")
	stored := len(s.stored())
	s.postForm("/v1/uploads/"+last+"/parts", field{name: "data", filename: "blob", value: "def"}).
		refused(400, "id", "too_many_parts", "10000 parts")
	if got := len(s.stored()); got != stored {
		t.Errorf("got %d blobs after the refusal, want %d", got, stored)
	}
	s.post("/v1/uploads/"+last+"/cancel", "").ok()
	s.post("/v1/uploads", body, "Idempotency-Key", "k2").ok() // a refusal is not stored
}
