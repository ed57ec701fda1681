package e2e

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
)

const (
	ownKey     = "sk-own-0123456789abcdef"
	foreignKey = "sk-foreign-0123456789abcdef"
)

// newServed returns a daemon with the race detector and two tenants, and a stub without delay.
func newServed(t *testing.T, set ...string) (*Daemon, *Stub) {
	stub := NewStub(t, "m")
	d := NewDaemon(t, Options{
		Binary: RaceBinary(t), Upstreams: []string{stub.URL}, Keys: "own=" + ownKey + ",foreign=" +
			foreignKey,
		Set: append([]string{"dispatch.tuning.poll_every=100ms"}, set...),
	})
	return d, stub
}

func sdk(d *Daemon, key string, options ...option.RequestOption) *openai.Client {
	c := openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(d.URL + "/v1"), option.WithAPIKey(key), option.WithOrganization("org-x"),
		option.WithProject("proj-x"),
	}, options...)...)
	return &c
}

func uploadSDK(
	t *testing.T, c *openai.Client, content []byte, options ...option.RequestOption,
) *openai.FileObject {
	t.Helper()
	f, err := c.Files.New(t.Context(), openai.FileNewParams{
		File:    openai.File(bytes.NewReader(content), "input.jsonl", "application/jsonl"),
		Purpose: openai.FilePurposeBatch,
	}, options...)
	if err != nil {
		t.Fatalf("upload: %v: %s", err, reason(err))
	}
	return f
}

func newBatch(input string) openai.BatchNewParams {
	return openai.BatchNewParams{
		InputFileID: input, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions,
		CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
	}
}

// awaitSDK polls as users do.
func awaitSDK(t *testing.T, c *openai.Client, id string) *openai.Batch {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		b, err := c.Batches.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		switch b.Status {
		case openai.BatchStatusCompleted, openai.BatchStatusFailed, openai.BatchStatusExpired,
			openai.BatchStatusCancelled:
			return b
		}
	}
	t.Fatalf("batch %s does not end", id)
	return nil
}

// reason returns the message of an SDK's error.
func reason(err error) string {
	if refused := (*openai.Error)(nil); errors.As(err, &refused) {
		return refused.RawJSON()
	}
	return ""
}

// wantError checks the class, code and parameter of an SDK's error.
func wantError(t *testing.T, err error, status int, code, parameter string) {
	t.Helper()
	refused := (*openai.Error)(nil)
	if !errors.As(err, &refused) {
		t.Errorf("got %v, want an error of status %d", err, status)
		return
	}
	if refused.StatusCode != status || refused.Code != code || refused.Param != parameter ||
		refused.Type != "invalid_request_error" || refused.Message == "" {
		t.Errorf("got status %d %s, want %d with code %q and param %q", refused.StatusCode,
			refused.RawJSON(), status, code, parameter)
	}
	if refused.Response.Header.Get("X-Request-Id") == "" {
		t.Error("the error has no request id")
	}
}

func TestGoSDKRunsABatch(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	c := sdk(d, ownKey)
	ctx := t.Context()
	lines := NewLines("sdk", "m", 250)

	f, err := c.Files.New(ctx, openai.FileNewParams{
		File: openai.File(bytes.NewReader(lines.Content), "größe \"1\".jsonl",
			"application/octet-stream"),
		Purpose:      openai.FilePurposeBatch,
		ExpiresAfter: openai.FileNewParamsExpiresAfter{Seconds: 3600},
	})
	if err != nil {
		t.Fatal(err, reason(err))
	}
	status := f.Status //nolint:staticcheck // clients of before it was deprecated read it
	if f.Bytes != int64(len(lines.Content)) || f.Purpose != "batch" || status != "processed" ||
		f.ExpiresAt != f.CreatedAt+3600 {
		t.Errorf("the file is %s", f.RawJSON())
	}
	if !strings.HasSuffix(f.Filename, `"1".jsonl`) {
		t.Errorf("the file's name is %q", f.Filename)
	}
	if got, err := c.Files.Get(ctx, f.ID); err != nil || got.RawJSON() != f.RawJSON() {
		t.Errorf("retrieved %v %v, uploaded %s", got, err, f.RawJSON())
	}
	if plain := uploadSDK(t, c, []byte("{}\n")); plain.ExpiresAt != plain.CreatedAt+30*24*3600 {
		t.Errorf("a batch file without expires_after ends at %d, want 30 days after %d",
			plain.ExpiresAt, plain.CreatedAt)
	}

	before := time.Now().Unix()
	params := newBatch(f.ID)
	params.Metadata = map[string]string{"project": "nightly", "größe": strings.Repeat("ü", 512)}
	params.OutputExpiresAfter = openai.BatchNewParamsOutputExpiresAfter{Seconds: 7200}
	params.SetExtraFields(map[string]any{"tidefill": map[string]any{"priority": 3,
		"max_concurrency": 32}})
	created, err := c.Batches.New(ctx, params)
	if err != nil {
		t.Fatal(err, reason(err))
	}
	if created.ID == "" || created.Object != "batch" || created.InputFileID != f.ID ||
		created.Endpoint != "/v1/chat/completions" ||
		created.CompletionWindow != "24h" || created.CreatedAt < before ||
		created.ExpiresAt != created.CreatedAt+24*3600 {
		t.Errorf("created %s", created.RawJSON())
	}
	if created.JSON.CompletedAt.Raw() != "null" || created.JSON.OutputFileID.Raw() != "null" ||
		created.JSON.Errors.Raw() != "null" {
		t.Errorf("fields without a value are not null: %s", created.RawJSON())
	}
	var own struct{ Priority int }
	if err := json.Unmarshal([]byte(created.JSON.ExtraFields["tidefill"].Raw()),
		&own); err != nil || own.Priority != 3 {
		t.Errorf("the extension is %s, want priority 3 (%v)",
			created.JSON.ExtraFields["tidefill"].Raw(), err)
	}

	b := awaitSDK(t, c, created.ID)
	if b.Status != openai.BatchStatusCompleted || b.RequestCounts.Total != 250 ||
		b.RequestCounts.Completed != 250 || b.RequestCounts.Failed != 0 {
		t.Fatalf("ended as %s", b.RawJSON())
	}
	if b.Usage.InputTokens != 750 || b.Usage.OutputTokens != 500 || b.Usage.TotalTokens != 1250 {
		t.Errorf("usage is %s", b.Usage.RawJSON())
	}
	if b.Model != "m" || b.Metadata["project"] != "nightly" || b.ErrorFileID != "" {
		t.Errorf("ended as %s", b.RawJSON())
	}
	if !slices.IsSorted([]int64{b.CreatedAt, b.InProgressAt, b.FinalizingAt, b.CompletedAt}) ||
		b.InProgressAt == 0 {
		t.Errorf("times are out of order: %s", b.RawJSON())
	}

	response, err := c.Files.Content(ctx, b.OutputFileID)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	seen := map[string]bool{}
	for in := bufio.NewScanner(response.Body); in.Scan(); {
		var r Result
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("sdk-%d", len(seen)); r.CustomID != want {
			t.Fatalf("output line %d is %s, not in the input's order", len(seen), r.CustomID)
		}
		if answerDigest(r.Response.Body) != Digest([]byte(lines.Bodies[r.CustomID])) {
			t.Fatalf("%s was sent another body than the user wrote", r.CustomID)
		}
		seen[r.CustomID] = true
	}
	if len(seen) != 250 {
		t.Errorf("the output has %d lines, want 250", len(seen))
	}
	output, err := c.Files.Get(ctx, b.OutputFileID)
	if err != nil || output.Purpose != "batch_output" || !strings.HasSuffix(output.Filename,
		".jsonl") || output.ExpiresAt != output.CreatedAt+7200 {
		t.Errorf("the output file is %v, %v", output, err)
	}

	deleted, err := c.Files.Delete(ctx, b.OutputFileID)
	if err != nil || !deleted.Deleted || deleted.Object != "file" {
		t.Errorf("delete: %v, %v", deleted, err)
	}
	_, err = c.Files.Content(ctx, b.OutputFileID)
	wantError(t, err, 404, "", "id")
	_, err = c.Files.Delete(ctx, b.OutputFileID)
	wantError(t, err, 404, "", "id")
}

func TestGoSDKPagesThroughFilesAndBatches(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	c := sdk(d, ownKey)
	ctx := t.Context()
	const n = 23 // several share a second of creation
	var files, batches []string
	for i := range n {
		f := uploadSDK(t, c, NewLines(fmt.Sprintf("page%d", i), "m", 1).Content)
		files = append(files, f.ID)
	}
	for range n {
		b, err := c.Batches.New(ctx, newBatch(files[0]))
		if err != nil {
			t.Fatal(err, reason(err))
		}
		batches = append(batches, b.ID)
	}
	newestFirst := slices.Clone(files)
	slices.Reverse(newestFirst)
	for _, limit := range []int64{1, 4, n - 1, n, n + 1} {
		for _, order := range []openai.FileListParamsOrder{"", openai.FileListParamsOrderAsc,
			openai.FileListParamsOrderDesc} {
			var got []string
			pager := c.Files.ListAutoPaging(ctx, openai.FileListParams{Limit: param.NewOpt(limit),
				Order: order, Purpose: param.NewOpt("batch")})
			for pager.Next() {
				got = append(got, pager.Current().ID)
			}
			want := newestFirst
			if order == openai.FileListParamsOrderAsc {
				want = files
			}
			if pager.Err() != nil || !slices.Equal(got, want) {
				t.Errorf("files, limit %d, order %q: got %v, %v\nwant %v", limit, order, got,
					pager.Err(), want)
			}
		}
	}
	slices.Reverse(batches)
	for _, limit := range []int64{0, 1, 7, n, 100} {
		var params openai.BatchListParams
		if limit > 0 {
			params.Limit = param.NewOpt(limit)
		}
		var got []string
		pager := c.Batches.ListAutoPaging(ctx, params)
		for pager.Next() {
			got = append(got, pager.Current().ID)
		}
		if pager.Err() != nil || !slices.Equal(got, batches) {
			t.Errorf("batches, limit %d: got %v, %v\nwant %v", limit, got, pager.Err(), batches)
		}
	}
	foreign, err := sdk(d, foreignKey).Batches.List(ctx, openai.BatchListParams{})
	if err != nil || len(foreign.Data) != 0 || foreign.HasMore {
		t.Errorf("another tenant lists %v, %v", foreign, err)
	}
	for _, limit := range []int64{0, 101} {
		_, err := c.Batches.List(ctx, openai.BatchListParams{Limit: param.NewOpt(limit)})
		wantError(t, err, 400, "invalid_value", "limit")
	}
	_, err = c.Batches.List(ctx, openai.BatchListParams{After: param.NewOpt("batch_doesnotexist")})
	if refused := (*openai.Error)(nil); errors.As(err, &refused) && refused.StatusCode >= 500 {
		t.Errorf("an unknown cursor: %v", err)
	}
}

func TestGoSDKErrorClasses(t *testing.T) {
	t.Parallel()
	d, stub := newServed(t, "dispatch.cancel_grace=100ms")
	c, foreign := sdk(d, ownKey), sdk(d, foreignKey)
	ctx := t.Context()
	f := uploadSDK(t, c, NewLines("err", "m", 3).Content)
	done, err := c.Batches.New(ctx, newBatch(f.ID))
	if err != nil {
		t.Fatal(err, reason(err))
	}
	awaitSDK(t, c, done.ID)

	t.Run("a wrong key", func(t *testing.T) {
		for _, id := range []string{done.ID, "batch_doesnotexist"} {
			_, err := sdk(d, "sk-wrong").Batches.Get(ctx, id)
			wantError(t, err, 401, "invalid_api_key", "")
		}
	})
	t.Run("unknown ids and those of another tenant", func(t *testing.T) {
		for _, id := range []string{done.ID, "batch_doesnotexist"} {
			_, err := foreign.Batches.Get(ctx, id)
			wantError(t, err, 404, "", "id")
			_, err = foreign.Batches.Cancel(ctx, id)
			wantError(t, err, 404, "", "id")
		}
		for _, id := range []string{f.ID, "file-doesnotexist"} {
			_, err := foreign.Files.Get(ctx, id)
			wantError(t, err, 404, "", "id")
			_, err = foreign.Files.Content(ctx, id)
			wantError(t, err, 404, "", "id")
			_, err = foreign.Files.Delete(ctx, id)
			wantError(t, err, 404, "", "id")
			_, err = foreign.Batches.New(ctx, newBatch(id))
			wantError(t, err, 400, "", "input_file_id")
		}
	})
	t.Run("invalid create requests", func(t *testing.T) {
		for _, test := range []struct {
			json        map[string]any
			code, param string
		}{
			{map[string]any{"input_file_id": ""}, "missing_required_parameter", "input_file_id"},
			{map[string]any{"endpoint": "/v1/nonsense"}, "invalid_value", "endpoint"},
			{map[string]any{"completion_window": "soon"}, "invalid_value", "completion_window"},
			{map[string]any{"completion_windov": "24h"}, "unknown_parameter", "completion_windov"},
			{map[string]any{"tidefill": map[string]any{"prioritty": 1}}, "unknown_parameter",
				"tidefill.prioritty"},
			{map[string]any{"tidefill": map[string]any{"retry": map[string]any{"tries": 1}}},
				"unknown_parameter", "tidefill.retry.tries"},
			{map[string]any{"tidefill": map[string]any{"priority": "high"}}, "invalid_type",
				"tidefill.priority"},
			{map[string]any{"metadata": map[string]any{"a": 1}}, "invalid_type", "metadata.a"},
		} {
			var options []option.RequestOption
			for key, value := range test.json {
				options = append(options, option.WithJSONSet(key, value))
			}
			_, err := c.Batches.New(ctx, newBatch(f.ID), options...)
			wantError(t, err, 400, test.code, test.param)
		}
	})
	t.Run("a late cancel is not repeated", func(t *testing.T) {
		var requests atomic.Int64
		counting := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (
			*http.Response, error) {
			requests.Add(1)
			return next(r)
		})
		_, err := c.Batches.Cancel(ctx, done.ID, counting)
		wantError(t, err, 409, "invalid_batch_status", "")
		if requests.Load() != 1 {
			t.Errorf("the SDK sent %d requests", requests.Load())
		}
	})
	t.Run("cancel", func(t *testing.T) {
		release := make(chan struct{})
		stub.Intercept(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
			select {
			case <-release:
			case <-r.Context().Done():
				return true
			}
			return false
		})
		defer stub.Intercept(nil)
		defer close(release)
		lines := NewLines("cancelled", "m", 40)
		b, err := c.Batches.New(ctx, newBatch(uploadSDK(t, c, lines.Content).ID))
		if err != nil {
			t.Fatal(err, reason(err))
		}
		for n := stub.InFlight(); n == 0; n = stub.InFlight() {
			time.Sleep(10 * time.Millisecond)
		}
		cancelling, err := c.Batches.Cancel(ctx, b.ID)
		if err != nil || cancelling.CancellingAt == 0 {
			t.Fatalf("cancel: %v, %v", cancelling, err)
		}
		ended := awaitSDK(t, c, b.ID)
		if ended.Status != openai.BatchStatusCancelled || ended.CancelledAt == 0 ||
			ended.OutputFileID != "" || ended.ErrorFileID == "" ||
			ended.RequestCounts.Failed != 40 {
			t.Fatalf("ended as %s", ended.RawJSON())
		}
		response, err := c.Files.Content(ctx, ended.ErrorFileID)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ParseResults(t, content) {
			if r.Error == nil || r.Error.Code != "batch_cancelled" || r.Response != nil {
				t.Errorf("leftover %s: %+v", r.CustomID, r)
			}
		}
	})
	t.Run("invalid input fails the batch and reaches no runner", func(t *testing.T) {
		before := stub.Requests()
		faulty := uploadSDK(
			t, c, []byte(
				`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}`+"\n{nonsense\n"))
		b, err := c.Batches.New(ctx, newBatch(faulty.ID))
		if err != nil {
			t.Fatal(err, reason(err))
		}
		b = awaitSDK(t, c, b.ID)
		if b.Status != openai.BatchStatusFailed || b.FailedAt == 0 || len(b.Errors.Data) != 1 ||
			b.Errors.Data[0].Line != 2 || b.Errors.Data[0].Code != "invalid_json_line" {
			t.Errorf("got %s", b.RawJSON())
		}
		if stub.Requests() != before {
			t.Error("a line of the failed batch was sent")
		}
	})
	t.Run("request ids", func(t *testing.T) {
		var response *http.Response
		_, err := c.Batches.Get(ctx, done.ID, option.WithResponseInto(&response))
		if err != nil || response.Header.Get("X-Request-Id") == "" {
			t.Errorf("no request id, %v", err)
		}
		_, err = c.Batches.Get(ctx, done.ID, option.WithResponseInto(&response), option.WithHeader(
			"X-Request-Id", "mine-1"))
		if err != nil || response.Header.Get("X-Request-Id") != "mine-1" {
			t.Errorf("the request id %q is not the client's, %v", response.Header.Get(
				"X-Request-Id"), err)
		}
	})
}

func TestGoSDKRetriesCreateOneBatch(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	ctx := t.Context()
	// The answer to each first attempt is lost.
	var attempts atomic.Int64
	c := sdk(d, ownKey, option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (
		*http.Response, error) {
		response, err := next(r)
		if r.Method == http.MethodPost && attempts.Add(1)%2 == 1 && err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return response, err
	}))
	content := NewLines("retry", "m", 2).Content
	f := uploadSDK(t, c, content, option.WithHeader("Idempotency-Key", "upload-1"))
	b, err := c.Batches.New(ctx, newBatch(f.ID), option.WithHeader("Idempotency-Key", "batch-1"))
	if err != nil {
		t.Fatal(err, reason(err))
	}
	if attempts.Load() != 4 {
		t.Fatalf("the SDK made %d attempts, want 4", attempts.Load())
	}
	awaitSDK(t, c, b.ID)
	files, err := c.Files.List(ctx, openai.FileListParams{Purpose: param.NewOpt("batch")})
	if err != nil || len(files.Data) != 1 {
		t.Errorf("there are %d files, %v, want 1", len(files.Data), err)
	}
	batches, err := c.Batches.List(ctx, openai.BatchListParams{})
	if err != nil || len(batches.Data) != 1 {
		t.Errorf("there are %d batches, %v, want 1", len(batches.Data), err)
	}
}

func TestGoSDKUploadsInParts(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	c := sdk(d, ownKey, option.WithMaxRetries(0))
	ctx := t.Context()
	lines := NewLines("parts", "m", 60)
	begin := func() *openai.Upload {
		t.Helper()
		u, err := c.Uploads.New(ctx, openai.UploadNewParams{
			Bytes:    int64(len(lines.Content)),
			Filename: "parts.jsonl", MimeType: "application/jsonl",
			Purpose: openai.FilePurposeBatch,
		})
		if err != nil {
			t.Fatal(err, reason(err))
		}
		return u
	}
	part := func(id string, content []byte) (*openai.UploadPart, error) {
		return c.Uploads.Parts.New(ctx, id, openai.UploadPartNewParams{Data: bytes.NewReader(
			content)})
	}
	u := begin()
	if u.Status != openai.UploadStatusPending || u.ExpiresAt != u.CreatedAt+3600 {
		t.Errorf("created %s", u.RawJSON())
	}
	cuts := []int{0, 1, len(lines.Content) / 3, len(lines.Content)} // in the middle of lines
	ids := make([]string, len(cuts)-1)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			p, err := part(u.ID, lines.Content[cuts[i]:cuts[i+1]])
			if err != nil {
				t.Error(err, reason(err))
				return
			}
			ids[i] = p.ID
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	_, err := c.Uploads.Complete(ctx, u.ID, openai.UploadCompleteParams{PartIDs: ids[:2]})
	if refused := (*openai.Error)(nil); !errors.As(err, &refused) || refused.StatusCode != 400 {
		t.Errorf("completed with a missing part: %v %s", err, reason(err))
	}
	_, err = c.Uploads.Complete(ctx, u.ID, openai.UploadCompleteParams{PartIDs: ids,
		Md5: param.NewOpt(strings.Repeat("0", 32))})
	if refused := (*openai.Error)(nil); !errors.As(err, &refused) || refused.StatusCode != 400 {
		t.Errorf("completed with a wrong md5: %v %s", err, reason(err))
	}
	sum := md5.Sum(lines.Content)
	u, err = c.Uploads.Complete(ctx, u.ID, openai.UploadCompleteParams{PartIDs: ids,
		Md5: param.NewOpt(hex.EncodeToString(sum[:]))})
	if err != nil {
		t.Fatal(err, reason(err))
	}
	if u.Status != openai.UploadStatusCompleted || u.File.Bytes != int64(len(lines.Content)) ||
		u.File.Purpose != "batch" {
		t.Errorf("completed %s", u.RawJSON())
	}
	b, err := c.Batches.New(ctx, newBatch(u.File.ID))
	if err != nil {
		t.Fatal(err, reason(err))
	}
	if b = awaitSDK(t, c, b.ID); b.Status != openai.BatchStatusCompleted ||
		b.RequestCounts.Completed != 60 {
		t.Errorf("ended as %s", b.RawJSON())
	}
	d.Verify(t, b.ID)

	dropped := begin()
	if _, err := part(dropped.ID, lines.Content); err != nil {
		t.Fatal(err)
	}
	if dropped, err = c.Uploads.Cancel(ctx, dropped.ID); err != nil ||
		dropped.Status != openai.UploadStatusCancelled {
		t.Errorf("cancelled %v, %v", dropped, err)
	}
	_, err = part(dropped.ID, lines.Content)
	if refused := (*openai.Error)(nil); !errors.As(err, &refused) || refused.StatusCode >= 500 {
		t.Errorf("a part for a cancelled upload: %v", err)
	}
	_, err = sdk(d, foreignKey).Uploads.Cancel(ctx, begin().ID)
	wantError(t, err, 404, "", "id")
}
