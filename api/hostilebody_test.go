package api

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileBodies reads bodies of the largest size whose members, elements or names would fill
// memory or an answer.
func TestHostileBodies(t *testing.T) {
	const most = 8 << 20
	fill := func(before, piece, after string) string {
		return before + strings.Repeat(piece, (maxBody-len(before)-len(after))/len(piece)) + after
	}
	distinct := func(before, after string) string {
		var b strings.Builder
		b.WriteString(before)
		for i := 0; b.Len() < maxBody-30-len(after); i++ {
			b.WriteByte('"')
			for n := i; n > 0; n /= 26 {
				b.WriteByte(byte('a' + n%26))
			}
			b.WriteString(`z":1,`)
		}
		return b.String() + `"":1` + after
	}
	for name, body := range map[string]string{
		"members":            distinct(`{`, `}`),
		"members of options": distinct(`{"tidefill":{`, `}}`),
		"parameters":         distinct(`{"tidefill":{"defaults":{`, `}}}`),
		"metadata":           distinct(`{"metadata":{`, `}}`),
		"inputs":             fill(`{"tidefill":{"input_file_ids":[1`, `,1`, `]}}`),
		"statuses":           fill(`{"tidefill":{"retry":{"on":[500`, `,1`, `]}}}`),
		"a long name":        fill(`{"`, `long`, `":1}`),
		"a long name twice":  fill(`{"a":1,"`, `long`, `":1}`),
		"a long model":       fill(`{"tidefill":{"defaults":{"by_model":{"`, `long`, `":1}}}}`),
		"a long url":         fill(`{"tidefill":{"defaults":{"by_url":{"`, `long`, `":{}}}}}`),
		"a long value":       fill(`{"endpoint":"`, `long`, `"}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readDraft([]byte(body), time.Now())
		runtime.ReadMemStats(&after)
		if err == nil || len(err.Error()) > 2000 || len(answerTo(err).Param) > 2000 ||
			answerTo(err).Status != 400 {
			t.Errorf("%s: got the error %.100v…, want a short one", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s: took %d KiB, want less than %d", name, used>>10, most>>10)
		}
	}
	body := fill(`{"part_ids":["a"`, `,"a"`, `]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readCompletion([]byte(body))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > most {
		t.Errorf("parts: %v, took %d KiB, want less than %d", err, used>>10, most>>10)
	}
}
