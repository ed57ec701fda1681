package api

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

type readPart struct{ name, filename, content string }

// readAllParts reads a form with a buffer of the given size.
func readAllParts(src io.Reader, boundary string, buffer int) (parts []readPart, err error) {
	f := newFormReader(src, boundary, make([]byte, buffer))
	for {
		header, err := f.next()
		if err == io.EOF {
			return parts, nil
		}
		if err != nil {
			return parts, err
		}
		content, err := io.ReadAll(f)
		if err != nil {
			return parts, err
		}
		parts = append(parts, readPart{header.name, header.filename, string(content)})
	}
}

func TestFormReaderReturnsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		boundary := rapid.StringMatching(`-{0,4}[a-z0-9]{1,66}`).Draw(t, "boundary")
		// Contents consist of texts that look like the start of a delimiter.
		piece := rapid.SampledFrom([]string{"\r", "\n", "\r\n", "-", "--", "\r\n--",
			"\r\n--" + boundary[:len(boundary)-1], "\r\n-" + boundary,
			"--" + boundary, "x", "\r\n--" + boundary + "x", strings.Repeat("long ", 2000)})
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		if err := w.SetBoundary(boundary); err != nil {
			t.Fatal(err)
		}
		var want []readPart
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			content := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, "content"), "")
			if holdsDelimiter(crlf+content+crlf, boundary) {
				content = "x"
			}
			h := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="n"; filename="f"`}}
			part, err := w.CreatePart(h)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(part, content)
			want = append(want, readPart{"n", "f", content})
		}
		w.Close()
		text := "preamble" + rapid.SampledFrom([]string{"\r\n", "\r\n\r\n", "\n\r\n"}).Draw(t,
			"preamble") + body.String() + "epilogue"
		var src io.Reader = strings.NewReader(text)
		switch rapid.IntRange(0, 2).Draw(t, "steps") {
		case 0:
			src = iotest.OneByteReader(src)
		case 1:
			src = iotest.DataErrReader(src)
		}
		got, err := readAllParts(src, boundary, 17<<10)
		if err != nil || len(got) != len(want) {
			t.Fatalf("got %d parts, %v; want %d", len(got), err, len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("part %d: got %q, want %q", i, got[i], want[i])
			}
		}
		// A form that is cut before the last byte of the closing boundary is an error.
		closing := strings.LastIndex(text, "--"+boundary+"--") + len(boundary) + 4
		cut := rapid.IntRange(0, closing-1).Draw(t, "cut")
		if _, err := readAllParts(strings.NewReader(text[:cut]), boundary, 17<<10); !errors.Is(err,
			io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d of %d: got %v, want %v", cut, closing, err, io.ErrUnexpectedEOF)
		}
	})
}

// holdsDelimiter reports whether the text contains a delimiter and so cannot be a part.
func holdsDelimiter(text, boundary string) bool {
	for _, follows := range []string{"\r", "\n", " ", "\t", "--"} {
		if strings.Contains(text, "\r\n--"+boundary+follows) {
			return true
		}
	}
	return false
}

func TestFormReaderForms(t *testing.T) {
	const head = "Content-Disposition: form-data; name=\"n\"\r\n\r\n"
	for name, c := range map[string]struct {
		body string
		want []readPart
		err  string
	}{
		"empty part": {"--b\r\n" + head + "\r\n--b--", []readPart{{"n", "", ""}},
			""},
		"empty part, one line's end": {"--b\r\n" + head + "--b--", []readPart{{"n", "", ""}}, ""},
		"no header":                  {"--b\r\n\r\nx\r\n--b--", []readPart{{"", "", "x"}}, ""},
		"no part":                    {"--b--\r\n", nil, ""},
		"padded boundary": {"--b \t\r\n" + head + "x\r\n--b  \r\n" + head +
			"y\r\n--b--  ", []readPart{{"n", "", "x"}, {"n", "", "y"}}, ""},
		"longer boundary": {"--b\r\n" + head + "x\r\n--bc\r\n--b--", []readPart{
			{"n", "", "x\r\n--bc"}}, ""},
		"not a form's part": {
			"--b\r\nContent-Disposition: attachment; name=n\r\n\r\nx\r\n--b--",
			[]readPart{{"", "", "x"}}, ""},
		"text after the boundary": {"--b\t?\r\n" + head + "x\r\n--b--", nil,
			errBoundary.Error()},
		"header too long": {"--b\r\nX: " + strings.Repeat("x", maxPartHeader) + "\r\n" +
			head, nil, errPartHeader.Error()},
		"header without a colon": {"--b\r\nnonsense\r\n\r\nx\r\n--b--", nil, "malformed"},
	} {
		for _, src := range []io.Reader{strings.NewReader(c.body),
			iotest.OneByteReader(strings.NewReader(c.body))} {
			got, err := readAllParts(src, "b", 17<<10)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(),
				c.err) {
				t.Errorf("%s: got error %v, want %q", name, err, c.err)
			}
			if len(got) != len(c.want) {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
				continue
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%s: got %q, want %q", name, got[i], c.want[i])
				}
			}
		}
	}
}
