package batchfile

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// bodies holds objects, and texts that are nearly objects.
var bodies = []string{
	`{}`, ` { } `, `{"a":1}`, "{\"a\" :\n1 , \"b\":[1,2,{\"c\":null}]\r\n}\n",
	`{"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
	`{"a":"\u00e9\\\"\/","usage":{"input_tokens":1} ,"usage":5,"\u0061":true}`,
	`{"a":-0.5e+10,"b":0,"c":1E5,"d":-0,"e":false}`,
	`{"a":01}`, `{"a":1.}`, `{"a":1e}`, `{"a":-}`, `{"a":tru}`, `{"a":truex}`, `{a:1}`, `{"a":1,}`,
	`{"a":[1,]}`, `{"a":[}`, `{"a"}`, `{"a":}`,
	`[]`, `"x"`, `1`, ``, ` `, `{`, `{"a`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
	`{}{}`, `{} x`, `{"a":1 2}`,
	"{\"\xff\xfe\":\"\xe2\x82\",\"b\":\"\xe2\x82\xac\xf0\x9f\"}",
	"{\"x\":\"\xc3\x28\xa0\xa1\xe2\x28\xa1\xf0\x90\x28\xbc\"}",
}

// largeBodies are too large for a fuzz test, which would spend its time on making them smaller.
var largeBodies = []string{
	strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat(`}`, 10_000),
	strings.Repeat(`{"a":`, 10_001) + `1` + strings.Repeat(`}`, 10_001),
	strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000),
	`{"` + strings.Repeat("k", 20_000) + `":1,"z":2}`,
}

// inPieces writes b in random pieces.
func inPieces(seed uint64, b []byte, to io.Writer) error {
	random := rand.New(rand.NewPCG(seed, 1))
	for len(b) > 0 {
		n := min(len(b), 1+random.IntN(1+random.IntN(20)))
		if _, err := to.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// checkAnswer converts an answer in pieces, as one that is too large for memory.
func checkAnswer(t *testing.T, seed uint64, body []byte) {
	t.Helper()
	if !IsObject(body) {
		return
	}
	var out bytes.Buffer
	w := NewBodyWriter(&out)
	if err := inPieces(seed, body, w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want := appendAnswer(nil, body); !bytes.Equal(out.Bytes(), want) ||
		w.Bytes() != int64(len(want)) {
		t.Fatalf("%q: converted to %q, want %q", body, out.Bytes(), want)
	}
}

func checkPieces(t *testing.T, body []byte, defaults, overrides map[string]json.RawMessage) {
	t.Helper()
	want, wantErr := EditBody(nil, body, defaults, overrides)
	pieces, err := EditPieces(iotest.OneByteReader(bytes.NewReader(body)), defaults, overrides, nil)
	if wantErr != nil { // EditPieces permits deeper values
		return
	}
	if err != nil {
		t.Fatalf("%.200q: %v, want %q", body, err, want)
	}
	var got []byte
	for _, p := range pieces {
		if p.Text != nil {
			got = append(got, p.Text...)
		} else {
			got = append(got, body[p.At:p.At+p.Length]...)
		}
	}
	if !bytes.Equal(got, want) || Size(pieces) != int64(len(want)) {
		t.Fatalf("%.200q: got %.200q in %d pieces, want %.200q", body, got, len(pieces), want)
	}
}

var someEdits = map[string]json.RawMessage{"a": json.RawMessage(`"new"`),
	"b": json.RawMessage(`null`), "n": json.RawMessage(`[1]`)}

func TestLargeBodiesAreTreatedAsSmallOnes(t *testing.T) {
	for i, body := range slices.Concat(bodies, largeBodies) {
		checkAnswer(t, uint64(i), []byte(body))
		checkPieces(t, []byte(body), someEdits, nil)
		checkPieces(t, []byte(body), nil, someEdits)
		checkPieces(t, []byte(body), nil, nil)
	}
}

func FuzzLargeBodies(f *testing.F) {
	for i, body := range bodies {
		f.Add(uint64(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, seed uint64, body []byte) {
		checkAnswer(t, seed, body)
		checkPieces(t, body, someEdits, nil)
		checkPieces(t, body, nil, someEdits)
	})
}

func TestEditPiecesSaysWhichKeysThereAre(t *testing.T) {
	var keys []string
	_, err := EditPieces(strings.NewReader(`{"a":1,"str\u0065am":{"b":2}}`), nil, nil,
		func(key string) { keys = append(keys, key) })
	if err != nil || strings.Join(keys, " ") != "a stream" {
		t.Errorf("got %q, %v", keys, err)
	}
}
