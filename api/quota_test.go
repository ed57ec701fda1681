package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func quota(bytes int64) func(*Config, *Deps) {
	return func(c *Config, _ *Deps) { c.TenantQuotaBytes = bytes }
}

// padded returns a valid line of a size.
func padded(size int) string { return longLine(1, size-1) }

func (s *service) used(tenant string, want int64) {
	s.t.Helper()
	if got, err := s.meta.UsedBytes(s.t.Context(), tenant); err != nil || got != want {
		s.t.Errorf("tenant %s uses %d bytes, %v; want %d", tenant, got, err, want)
	}
}

func (s *service) sendFile(content string, header ...string) answer {
	s.t.Helper()
	body, contentType := encodeForm(s.t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: content})
	return s.do("POST", "/v1/files", body, append([]string{"Content-Type", contentType},
		header...)...)
}

func TestQuotaOfFiles(t *testing.T) {
	s := newService(t, quota(1000))
	first := s.upload(padded(600))
	over := s.sendFile(padded(401))
	over.refused(413, "", "storage_quota_exceeded", "600", "1000", "default")
	if over.header.Get("X-Should-Retry") != "false" {
		t.Error("SDKs would retry at once")
	}
	s.used(DefaultTenant, 600)
	if stored := s.stored(); len(stored) != 2 {
		t.Errorf("got %v stored, want one file and its index", stored)
	}
	s.upload(padded(400))
	s.sendFile(padded(200)).refused(413, "", "storage_quota_exceeded")
	s.do("DELETE", "/v1/files/"+first, nil).ok()
	s.upload(padded(600))
}

// TestQuotaIsCheckedBeforeTheUpload announces a file that cannot fit. It must be refused before any
// of it is sent.
func TestQuotaIsCheckedBeforeTheUpload(t *testing.T) {
	s := newService(t, quota(1000))
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/files", neverRead{t})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = formOverhead + 1001
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.Header.Set("Expect", "100-continue") // the client sends the body when the server asks for it
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: 1 << 40}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want 413", resp.StatusCode)
	}
}

type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("the body was sent")
	return 0, io.EOF
}

func TestQuotaOfTenants(t *testing.T) {
	keys, err := ParseKeys("a=key-a,b=key-b,c=key-c")
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(c *Config, d *Deps) {
		c.TenantQuotaBytes, c.TenantQuotas, d.Keys = 500, map[string]int64{"b": 1000, "c": 0}, keys
	})
	for tenant, fits := range map[string]int{"a": 500, "b": 1000, "c": 5000} {
		s.sendFile(padded(fits), "Authorization", "Bearer key-"+tenant).ok()
		if tenant == "c" { // it has no limit
			continue
		}
		s.sendFile(padded(300), "Authorization", "Bearer key-"+tenant).refused(413, "",
			"storage_quota_exceeded", fmt.Sprint(fits), "'"+tenant+"'")
	}
}

// TestQuotaOfConcurrentUploads sends files at once of which each fits alone.
func TestQuotaOfConcurrentUploads(t *testing.T) {
	const uploads, size, fit = 12, 40_000, 5
	s := newService(t, quota(fit*size+size/2))
	answers := make(chan answer)
	for range uploads {
		go func() { answers <- s.sendFile(padded(size)) }()
	}
	kept := 0
	for range uploads {
		switch a := <-answers; a.status {
		case http.StatusOK:
			kept++
		default:
			a.refused(413, "", "storage_quota_exceeded")
		}
	}
	if kept == 0 || kept > fit {
		t.Errorf("%d files were stored where %d fit", kept, fit)
	}
	s.used(DefaultTenant, int64(kept*size))
	for ; kept < fit; kept++ { // ended uploads have released their bytes
		s.upload(padded(size))
	}
	if n := len(s.server.quotas.accounts); n != 0 {
		t.Errorf("%d accounts remain without a request", n)
	}
}

func TestQuotaOfParts(t *testing.T) {
	s := newService(t, quota(1000))
	content := padded(900)
	id := s.createUpload(len(content), "")
	parts := []string{s.addPart(id, content[:500]), s.addPart(id, content[500:])}
	s.used(DefaultTenant, 900)
	s.postForm("/v1/uploads/"+id+"/parts",
		field{name: "data", filename: "x", value: content[:200]}).refused(413, "",
		"storage_quota_exceeded", "900")
	s.complete(id, "", parts...).ok() // its bytes were counted before
	s.used(DefaultTenant, 900)
}

func TestQuotaOfRetries(t *testing.T) {
	s := newService(t, diskJournals(t), quota(1000))
	id := s.createWith(s.upload(padded(400)), `{}`).ok()["id"].(string)
	s.end(id, []string{`"1"`})
	s.upload(padded(300))
	s.retry(id, "").refused(413, "", "storage_quota_exceeded", "1000")
	if got := s.filesNamed("retry-of-"); len(got) > 0 {
		t.Errorf("the refused retry has left the files %v", got)
	}
}

// TestPartsAreLimitedByTheSizeOfTheUpload sends more parts than the upload can use.
func TestPartsAreLimitedByTheSizeOfTheUpload(t *testing.T) {
	s := newService(t)
	id := s.createUpload(1000, "")
	send := func(size int) answer {
		return s.postForm("/v1/uploads/"+id+"/parts",
			field{name: "data", filename: "x", value: strings.Repeat("x", size)})
	}
	send(1001).refused(413, "", "", "1000")
	send(600).ok()
	send(600).ok() // may be a repetition after a lost answer
	send(600).ok()
	send(201).refused(413, "", "", "1800", "1000")
	send(200).ok()
	send(1).refused(413, "", "", "2000")
	answers := make(chan answer)
	id = s.createUpload(1000, "")
	for range 8 {
		go func() { answers <- send(900) }()
	}
	kept := 0
	for range 8 {
		if a := <-answers; a.status == http.StatusOK {
			kept++
		} else {
			a.refused(413, "", "", "1000")
		}
	}
	if kept == 0 || kept > 2 {
		t.Errorf(
			"%d parts of 900 bytes side by side were kept for an upload of 1000, want at most two",
			kept)
	}
	if n := len(s.server.parts.accounts); n != 0 {
		t.Errorf("%d accounts remain without a request", n)
	}
}
