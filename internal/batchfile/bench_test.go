package batchfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// prose returns at least n bytes of text for the inside of a string literal: words, with some
// escapes.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		for range 2 + r.IntN(9) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		switch r.IntN(12) {
		case 0:
			b.WriteString(`\n`)
		case 1:
			b.WriteString(`, \"`)
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func chatFile(lines, prompt int, text func(*rand.Rand, int) string) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var file bytes.Buffer
	for i := range lines {
		fmt.Fprintf(
			&file, `{"custom_id": "request-%d", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "llama-3.1-8b", `+
				`"messages": [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": "%s"}], "max_tokens": 1000}}`+"\n",
			i, text(r, prompt))
	}
	return file.Bytes()
}

func tokenFile(lines, tokens int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var file bytes.Buffer
	for i := range lines {
		fmt.Fprintf(
			&file, `{"custom_id":"request-%d","method":"POST","url":"/v1/completions","body":{"model":"m","max_tokens":5,"prompt":[1`, i)
		for range tokens {
			fmt.Fprintf(&file, ", %d", r.IntN(128_000))
		}
		file.WriteString("]}}\n")
	}
	return file.Bytes()
}

// benchFiles returns batch files by the size of their prompts.
func benchFiles() map[string][]byte {
	umlauts := func(r *rand.Rand, n int) string { return strings.ReplaceAll(prose(r, n), "e", "ü") }
	return map[string][]byte{
		"prompt=200B":      chatFile(16_000, 200, prose),
		"prompt=4KiB":      chatFile(4_000, 4<<10, prose),
		"prompt=4KiB/utf8": chatFile(4_000, 4<<10, umlauts),
		"prompt=256KiB":    chatFile(64, 256<<10, prose),
		"tokens=1000":      tokenFile(2_000, 1_000),
	}
}

func BenchmarkScan(b *testing.B) {
	for name, file := range benchFiles() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				s := NewScanner(io.Discard, Limits{})
				for rest := file; len(rest) > 0; {
					n := min(len(rest), 64<<10)
					s.Write(rest[:n])
					rest = rest[n:]
				}
				if sum, err := s.Finish(); err != nil || sum.FaultCount > 0 {
					b.Fatal(sum.Faults, err)
				}
			}
		})
	}
}

// BenchmarkUpload compares an upload that only writes and syncs with one that also scans.
func BenchmarkUpload(b *testing.B) {
	content := chatFile(12_000, 4<<10, prose)
	upload := func(b *testing.B, more ...io.Writer) {
		file, err := os.Create(filepath.Join(b.TempDir(), "upload.jsonl"))
		if err != nil {
			b.Fatal(err)
		}
		defer file.Close()
		w := io.MultiWriter(append(more, file)...)
		for chunk := range slices.Chunk(content, 64<<10) {
			if _, err := w.Write(chunk); err != nil {
				b.Fatal(err)
			}
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			upload(b)
		}
	})
	b.Run("write+scan", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			s := NewScanner(io.Discard, Limits{})
			upload(b, s)
			if sum, err := s.Finish(); err != nil || sum.FaultCount > 0 {
				b.Fatal(sum.Faults, err)
			}
		}
	})
}

var answer = []byte(
	`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":"` + prose(rand.New(rand.NewPCG(3, 4)), 4<<10) +
		`"},"finish_reason":"stop","logprobs":null}],` +
		`"usage":{"prompt_tokens":120,"completion_tokens":900,"total_tokens":1020,"prompt_tokens_details":{"cached_tokens":64}}}`)

func BenchmarkAppendResult(b *testing.B) {
	r := Result{ID: "batch_req_1", CustomID: []byte(`"a"`), Status: 200,
		RequestID: "req_1", Body: answer}
	var dst []byte
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendResult(dst[:0], r)
	}
}

func BenchmarkReadAnswer(b *testing.B) {
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, _, _ := ReadAnswer(answer, "choices"); !ok {
			b.Fatal("no usage")
		}
	}
}

func BenchmarkEditBody(b *testing.B) {
	overrides := map[string]json.RawMessage{"temperature": json.RawMessage("0"),
		"model": json.RawMessage(`"n"`)}
	defaults := map[string]json.RawMessage{"top_p": json.RawMessage("1")}
	var dst []byte
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = EditBody(dst[:0], answer, defaults, overrides); err != nil {
			b.Fatal(err)
		}
	}
}
