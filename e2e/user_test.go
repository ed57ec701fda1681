package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// user uses the complete API, one operation after the other, whatever happens to the daemon, and
// records the acknowledged objects.
type user struct {
	name     string
	c        *Client
	random   *rand.Rand
	announce func(operation string)
	done     int             // actions
	files    map[string]bool // acknowledged and not deleted
	batches  []promised
}

// promised is a batch that the daemon acknowledged.
type promised struct {
	id      string
	lines   Lines
	ends    []string // the states in which it may end
	deleted bool
	results []string // of a deleted batch: its files, which remain
}

// refusal is in the names of lines of which the stub refuses about half.
const refusal = "refused"

func isRefused(body string) bool {
	return strings.Contains(body, refusal) && Digest([]byte(body))[0]%2 == 0
}

// refusedOf returns the lines that the stub refuses, as a retry has them.
func refusedOf(lines Lines) Lines {
	bodies := map[string]string{}
	for id, body := range lines.Bodies {
		if isRefused(body) {
			bodies[id] = body
		}
	}
	return Lines{Bodies: bodies}
}

func newUser(name string, c *Client, random *rand.Rand, announce func(string)) *user {
	return &user{name: name, c: c, random: random, announce: announce, files: map[string]bool{}}
}

// act runs one of the user's activities, from the upload to the end of its batch.
func (u *user) act(ctx context.Context) error {
	actions := []func(
		context.Context) error{u.runOne, u.runOfParts, u.pauseAndResume, u.cancel, u.expire, u.stop,
		u.retry, u.remove}
	u.done++
	return actions[u.random.IntN(len(actions))](ctx)
}

// do announces an operation and repeats it until it is answered. tried counts from 1.
func (u *user) do(ctx context.Context, operation string, send func(tried int) error) error {
	u.announce(operation)
	tried := 0
	err := retry(ctx, func() error { tried++; return send(tried) })
	if err != nil {
		return fmt.Errorf("%s of %s: %w", operation, u.name, err)
	}
	return nil
}

// retry repeats a request without an answer or with a temporary error. Any other error fails it: a
// kill must not cause an error.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if refused := (statusError{}); err == nil || errors.As(err, &refused) &&
			refused.answer.Header.Get("Retry-After") == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// repeated accepts an error of a repeated request whose first attempt may have succeeded.
func repeated(err error, tried int, status int) error {
	if refused := (statusError{}); tried > 1 && errors.As(err, &refused) &&
		refused.answer.Status == status {
		return nil
	}
	return err
}

func (u *user) key() string { return fmt.Sprintf("%s-%x", u.name, u.random.Uint64()) }

func (u *user) newLines(kind string, n int) Lines {
	return NewLines(fmt.Sprintf("%s-%d-%s", u.name, u.done, kind), "m", n)
}

func (u *user) upload(ctx context.Context, lines Lines) (f File, err error) {
	key := u.key()
	err = u.do(ctx, "upload", func(int) (err error) {
		f, err = u.c.Upload(lines.Content, "Idempotency-Key", key)
		return err
	})
	if err == nil {
		u.files[f.ID] = true
	}
	return f, err
}

// create creates a batch that may end in one of the given states.
func (u *user) create(
	ctx context.Context, file, extensions string, lines Lines, ends ...string,
) (b Batch, err error) {
	key := u.key()
	err = u.do(ctx, "create", func(int) (err error) {
		b, err = u.c.CreateBatch(file, extensions, "Idempotency-Key", key)
		return err
	})
	if err == nil {
		u.batches = append(u.batches, promised{id: b.ID, lines: lines, ends: ends})
	}
	return b, err
}

func (u *user) submit(
	ctx context.Context, lines Lines, extensions string, ends ...string,
) (Batch, error) {
	f, err := u.upload(ctx, lines)
	if err != nil {
		return Batch{}, err
	}
	return u.create(ctx, f.ID, extensions, lines, ends...)
}

// await polls a batch until holds returns true or it has ended.
func (u *user) await(ctx context.Context, id string, holds func(Batch) bool) (b Batch, err error) {
	finalizing := false
	for {
		if err := retry(ctx, func() (err error) {
			b, err = u.c.Batch(id)
			return err
		}); err != nil {
			return b, err
		}
		if b.Ended() || holds != nil && holds(b) {
			return b, nil
		}
		if b.Status == "finalizing" && !finalizing {
			finalizing = true
			u.announce("finalize")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (u *user) runOne(ctx context.Context) error {
	b, err := u.submit(ctx, u.newLines("one", 50+u.random.IntN(251)), "", "completed")
	if err == nil {
		_, err = u.await(ctx, b.ID, nil)
	}
	return err
}

// runMany runs a batch with the maximum number of lines.
func (u *user) runMany(ctx context.Context, n int) error {
	u.done++
	b, err := u.submit(ctx, u.newLines("many", n), "", "completed")
	if err == nil {
		_, err = u.await(ctx, b.ID, nil)
	}
	return err
}

func (u *user) runOfParts(ctx context.Context) error {
	lines := u.newLines("parts", 50+u.random.IntN(101))
	key := u.key()
	var upload struct{ ID string }
	open := fmt.Sprintf(
		`{"filename":"parts.jsonl","purpose":"batch","bytes":%d,"mime_type":"application/jsonl"}`,
		len(lines.Content))
	err := u.do(ctx, "upload", func(int) error {
		return u.c.json("POST", "/v1/uploads", "application/json", strings.NewReader(open), &upload,
			"Idempotency-Key", key)
	})
	if err != nil {
		return err
	}
	var parts []string
	for rest := lines.Content; len(rest) > 0; {
		n := min(len(rest), 1+u.random.IntN(len(lines.Content)))
		kind, form := partForm(rest[:n])
		rest = rest[n:]
		var part struct{ ID string }
		err := u.do(ctx, "part", func(int) error {
			return u.c.json("POST", "/v1/uploads/"+upload.ID+"/parts", kind, bytes.NewReader(form),
				&part)
		})
		if err != nil {
			return err
		}
		parts = append(parts, fmt.Sprintf("%q", part.ID))
	}
	var completed struct{ File File }
	first := ""
	for range 1 + u.random.IntN(2) { // a repeated completion gives the same answer
		body := fmt.Sprintf(`{"part_ids":[%s]}`, strings.Join(parts, ","))
		err := u.do(ctx, "assemble", func(int) error {
			return u.c.json("POST", "/v1/uploads/"+upload.ID+"/complete",
				"application/json", strings.NewReader(body), &completed)
		})
		if err != nil {
			return err
		}
		if first != "" && completed.File.ID != first {
			return fmt.Errorf("completing upload %s once more made the file %s beside %s",
				upload.ID, completed.File.ID, first)
		}
		first = completed.File.ID
	}
	u.files[first] = true
	b, err := u.create(ctx, first, "", lines, "completed")
	if err == nil {
		_, err = u.await(ctx, b.ID, nil)
	}
	return err
}

func (u *user) pauseAndResume(ctx context.Context) error {
	b, err := u.submit(ctx, u.newLines("paused", 200), "", "completed")
	if err != nil {
		return err
	}
	for _, operation := range []string{"pause", "resume"} {
		err := u.do(ctx, operation, func(int) error { return ended(u.post(b.ID, operation)) })
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(u.random.IntN(50)) * time.Millisecond)
	}
	_, err = u.await(ctx, b.ID, nil)
	return err
}

func (u *user) cancel(ctx context.Context) error {
	b, err := u.submit(ctx, u.newLines("cancelled", 300), "", "cancelled", "completed")
	if err != nil {
		return err
	}
	enough := u.random.IntN(200)
	if b, err = u.await(ctx, b.ID, func(b Batch) bool {
		return b.RequestCounts.Completed >= enough
	}); err != nil {
		return err
	}
	if err := u.do(ctx, "cancel", func(int) error {
		return ended(u.post(b.ID, "cancel"))
	}); err != nil {
		return err
	}
	_, err = u.await(ctx, b.ID, nil)
	return err
}

// expire creates a batch whose deadline passes while it runs.
func (u *user) expire(ctx context.Context) error {
	b, err := u.submit(ctx, u.newLines("expired", 1500), `{"deadline":"1s"}`, "expired",
		"completed")
	if err == nil {
		_, err = u.await(ctx, b.ID, nil)
	}
	return err
}

// stop creates a batch that ends at a limit of its own.
func (u *user) stop(ctx context.Context) error {
	b, err := u.submit(ctx, u.newLines(refusal, 200), `{"max_failed_lines":20}`, "failed")
	if err == nil {
		_, err = u.await(ctx, b.ID, nil)
	}
	return err
}

func (u *user) retry(ctx context.Context) error {
	lines := u.newLines(refusal, 30+u.random.IntN(30))
	b, err := u.submit(ctx, lines, "", "completed")
	if err != nil {
		return err
	}
	if _, err := u.await(ctx, b.ID, nil); err != nil {
		return err
	}
	key, first := u.key(), ""
	for range 1 + u.random.IntN(2) { // a retry under the same key is the same batch
		var again Batch
		err := u.do(ctx, "retry", func(int) error {
			return u.c.json("POST", "/v1/batches/"+b.ID+"/retry",
				"application/json", strings.NewReader("{}"), &again, "Idempotency-Key", key)
		})
		if err != nil {
			return err
		}
		if first != "" && again.ID != first {
			return fmt.Errorf("retrying batch %s under one key made %s beside %s", b.ID, again.ID,
				first)
		}
		if first == "" {
			u.batches = append(u.batches, promised{id: again.ID, lines: refusedOf(lines),
				ends: []string{"completed"}})
			u.files[again.InputFileID] = true
		}
		first = again.ID
	}
	_, err = u.await(ctx, first, nil)
	return err
}

// remove deletes the input of a running batch, and the batch and its results after its end.
func (u *user) remove(ctx context.Context) error {
	b, err := u.submit(ctx, u.newLines("removed", 50), "", "completed")
	if err != nil {
		return err
	}
	if u.random.IntN(2) == 0 {
		if err := u.removeFile(ctx, b.InputFileID); err != nil {
			return err
		}
	}
	if b, err = u.await(ctx, b.ID, nil); err != nil {
		return err
	}
	p := &u.batches[len(u.batches)-1]
	p.deleted = true
	if b.OutputFileID != nil {
		if u.random.IntN(2) == 0 {
			if err := u.removeFile(ctx, *b.OutputFileID); err != nil {
				return err
			}
		} else {
			p.results = append(p.results, *b.OutputFileID)
		}
	}
	return u.do(ctx, "delete batch", func(tried int) error {
		return repeated(u.delete("/v1/batches/"+b.ID), tried, http.StatusNotFound)
	})
}

func (u *user) removeFile(ctx context.Context, id string) error {
	err := u.do(ctx, "delete file", func(tried int) error {
		return repeated(u.delete("/v1/files/"+id), tried, http.StatusNotFound)
	})
	delete(u.files, id)
	return err
}

func (u *user) post(batch, operation string) error {
	var b Batch
	return u.c.json("POST", "/v1/batches/"+batch+"/"+operation, "", nil, &b)
}

func (u *user) delete(path string) error {
	var answer struct{ Deleted bool }
	return u.c.json("DELETE", path, "", nil, &answer)
}

// ended accepts that a batch ended before it was stopped.
func ended(err error) error {
	return repeated(err, 2, http.StatusConflict)
}

// partForm returns the body of one part of an upload.
func partForm(content []byte) (contentType string, body []byte) {
	kind, form := Form(nil, "part", content)
	return kind, bytes.Replace(form, []byte(`name="file"`), []byte(`name="data"`), 1)
}
