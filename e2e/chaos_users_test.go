package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// sdkUser works with the official client through any of several daemons, whatever happens to them,
// and records each call.
type sdkUser struct {
	*user
	sdk     openai.Client
	history *History
	deleted []string // files
}

// newSDKUser returns a user who repeats each call until it is answered. The calls of the SDK are
// not repeated by it, so that each is recorded.
func newSDKUser(u *user, history *History) *sdkUser {
	return &sdkUser{user: u, history: history, sdk: openai.NewClient(
		option.WithBaseURL(u.c.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0),
		option.WithHTTPClient(u.c.HTTP))}
}

// sdkStatus returns the status of an answer with an error; 0: there was no answer that says whether
// the call took effect.
func sdkStatus(err error) int {
	refused := (*openai.Error)(nil)
	if !errors.As(err, &refused) || refused.StatusCode >= 500 ||
		refused.Response.Header.Get("Retry-After") != "" { // such as for a key in use
		return 0
	}
	return refused.StatusCode
}

// call records a call about an object, and repeats it until it is answered.
func (u *sdkUser) call(
	ctx context.Context, object, what string, send func() (userAnswer, error),
) (answer userAnswer, err error) {
	for {
		called := u.history.Now()
		answer, err = send()
		switch status := sdkStatus(err); {
		case err == nil:
			u.history.Add(called, userCall{object, what}, answer)
			return answer, nil
		case status == http.StatusNotFound:
			answer = userAnswer{missing: true}
			u.history.Add(called, userCall{object, what}, answer)
			return answer, nil
		case status == http.StatusConflict:
			answer = userAnswer{refused: true}
			u.history.Add(called, userCall{object, what}, answer)
			return answer, nil
		case status != 0:
			return answer, fmt.Errorf("%s %s of %s: %w", what, object, u.name, err)
		case what != "get":
			u.history.AddUnknown(called, userCall{object, what}, userAnswer{unknown: true})
		}
		if ctx.Err() != nil {
			return answer, ctx.Err()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// answerOf returns what a batch object says.
func answerOf(b *openai.Batch) userAnswer {
	var full Batch
	var details struct{ Tidefill struct{ Paused bool } }
	_ = json.Unmarshal([]byte(b.RawJSON()), &full)
	_ = json.Unmarshal([]byte(b.RawJSON()), &details)
	return userAnswer{status: full.Status, paused: details.Tidefill.Paused}
}

// submit uploads lines and creates a batch of them, as one who repeats calls under a key does.
func (u *sdkUser) submit(ctx context.Context, lines Lines, ends ...string) (id, file string,
	err error) {
	key := u.key()
	for {
		var f *openai.FileObject
		called := u.history.Now()
		f, err = u.sdk.Files.New(ctx, openai.FileNewParams{
			File: openai.File(bytes.NewReader(lines.Content), "input.jsonl",
				"application/jsonl"),
			Purpose: openai.FilePurposeBatch}, option.WithHeader("Idempotency-Key", key))
		if err == nil {
			u.history.Add(called, userCall{f.ID, "create"}, userAnswer{})
			file = f.ID
			u.files[file] = true
			break
		}
		if sdkStatus(err) != 0 || ctx.Err() != nil {
			return "", "", fmt.Errorf("upload of %s: %w", u.name, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for key = u.key(); ; time.Sleep(50 * time.Millisecond) {
		called := u.history.Now()
		b, err := u.sdk.Batches.New(ctx, newBatch(file), option.WithHeader("Idempotency-Key", key))
		if err == nil {
			u.history.Add(called, userCall{b.ID, "create"}, answerOf(b))
			u.batches = append(u.batches, promised{id: b.ID, lines: lines, ends: ends})
			return b.ID, file, nil
		}
		if sdkStatus(err) != 0 || ctx.Err() != nil {
			return "", "", fmt.Errorf("create of %s: %w", u.name, err)
		}
	}
}

func (u *sdkUser) get(ctx context.Context, id string) (userAnswer, error) {
	return u.call(ctx, id, "get", func() (userAnswer, error) {
		b, err := u.sdk.Batches.Get(ctx, id)
		if err != nil {
			return userAnswer{}, err
		}
		return answerOf(b), nil
	})
}

// post cancels, pauses or resumes a batch.
func (u *sdkUser) post(ctx context.Context, id, what string) error {
	_, err := u.call(ctx, id, what, func() (userAnswer, error) {
		var b openai.Batch
		err := u.sdk.Post(ctx, "batches/"+id+"/"+what, nil, &b)
		if err != nil {
			return userAnswer{}, err
		}
		return answerOf(&b), nil
	})
	return err
}

// awaitEnd polls until the batch has ended. A batch that a pause without an answer has paused late
// is resumed.
func (u *sdkUser) awaitEnd(ctx context.Context, id string) error {
	for {
		answer, err := u.get(ctx, id)
		switch {
		case err != nil:
			return err
		case answer.missing:
			return fmt.Errorf("batch %s of %s is missing", id, u.name)
		case ranks[answer.status] == finalRank:
			return nil
		case answer.paused:
			if err := u.post(ctx, id, "resume"); err != nil {
				return err
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// act runs one of the user's activities.
func (u *sdkUser) act(ctx context.Context) error {
	u.done++
	what := []string{"cancel", "pause", "delete", "run"}[u.random.IntN(4)]
	ends := []string{"completed"}
	if what == "cancel" {
		ends = append(ends, "cancelled")
	}
	id, file, err := u.submit(ctx, u.newLines("sdk-"+what, 50+u.random.IntN(200)), ends...)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(u.random.IntN(1000)) * time.Millisecond)
	switch what {
	case "cancel":
		err = u.post(ctx, id, "cancel")
	case "pause":
		if err = u.post(ctx, id, "pause"); err == nil {
			if _, err = u.get(ctx, id); err == nil {
				err = u.post(ctx, id, "resume")
			}
		}
	}
	if err == nil {
		err = u.awaitEnd(ctx, id)
	}
	if err == nil && what == "delete" {
		err = u.deleteFile(ctx, file)
	}
	return err
}

func (u *sdkUser) deleteFile(ctx context.Context, file string) error {
	if _, err := u.call(ctx, file, "delete", func() (userAnswer, error) {
		_, err := u.sdk.Files.Delete(ctx, file)
		return userAnswer{}, err
	}); err != nil {
		return err
	}
	delete(u.files, file)
	u.deleted = append(u.deleted, file)
	return u.findFile(ctx, file)
}

// findFile asks whether a file exists, for the history.
func (u *sdkUser) findFile(ctx context.Context, file string) error {
	_, err := u.call(ctx, file, "get", func() (userAnswer, error) {
		_, err := u.sdk.Files.Get(ctx, file)
		return userAnswer{}, err
	})
	return err
}
