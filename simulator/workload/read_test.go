package workload

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadRefusesWithNameAndLine(t *testing.T) {
	const head = "t_s,input_tokens,output_tokens\n"
	for _, c := range []struct {
		name   string
		format Format
		text   string
		want   string
	}{
		{"empty file", CSV, "", "f:1: the file is empty, want a header"},
		{"no request", CSV, head, "f: the trace holds no request"},
		{"no lines", Mooncake, "\n\n", "f: the trace holds no request"},
		{"unknown column", CSV, "t_s,input_tokens,output_tokens,user\n",
			`f:1: unknown column "user", want t_s, input_tokens`},
		{"our column in azure", Azure, "t_s,input_tokens,output_tokens,class\n",
			`f:1: unknown column "class"`},
		{"missing column", CSV, "t_s,input_tokens\n", `f:1: column "output_tokens" is missing`},
		{"no header", CSV, "0,1,2\n", `f:1: unknown column "0"`},
		{"twice", CSV, "t_s,t_s\n", `f:1: column "t_s" occurs twice`},
		{"prefix without length", CSV, "t_s,input_tokens,output_tokens,prefix_id\n",
			"f:1: the columns prefix_id and prefix_tokens go together"},
		{"short row", CSV, head + "0,1\n", "f:2: wrong number of fields"},
		{"quote", CSV, head + "0,1,1\n1,\"2,3\n", `f:3: extraneous or missing " in quoted-field`},
		{"word", CSV, head + "0,1,1\n\n1,many,1\n", `f:4: input_tokens is "many": want a number`},
		{"negative time", CSV, head + "-1,1,1\n", `f:2: t_s is "-1": want no negative time`},
		{"no time", CSV, head + "NaN,1,1\n", `f:2: t_s is "NaN": want a finite number`},
		{"for ever", CSV, head + "1e300,1,1\n", `f:2: t_s is "1e300": want at most 1e+09`},
		{"negative tokens", CSV, head + "0,-3,1\n",
			`f:2: input_tokens is "-3": want a whole number from 1`},
		{"infinite tokens", CSV, head + "0,1,Inf\n",
			`f:2: output_tokens is "Inf": want a finite number`},
		{"half a token", CSV, head + "0,1.5,1\n",
			`f:2: input_tokens is "1.5": want a whole number`},
		{"no output", CSV, head + "0,1,0\n",
			`f:2: output_tokens is "0": want a whole number from 1`},
		{"back in time", CSV, head + "1,1,1\n2,1,1\n1.5,1,1\n",
			"f:4: the time decreases from 2 to 1.5 s"},
		{"prefix beyond prompt", CSV,
			"t_s,input_tokens,output_tokens,prefix_id,prefix_tokens\n0,5,1,a,6\n",
			`f:2: prefix_tokens is "6": want no more than input_tokens`},
		{"broken JSON", Mooncake, mooncakeRow(0) + "{\n", "f:2: unexpected EOF"},
		{"unknown field", Mooncake, `{"timestamp": 0, "user": 1}`,
			`f:1: json: unknown field "user"`},
		{"missing field", Mooncake, `{"timestamp": 0, "input_length": 1, "output_length": 1}`,
			"f:1: hash_ids: the field is missing"},
		{"negative length", Mooncake,
			`{"timestamp": 0, "input_length": -1, "output_length": 1, "hash_ids": []}`,
			"f:1: input_length: want a whole number from 1"},
		{"negative stamp", Mooncake,
			`{"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": []}`,
			"f:1: timestamp: want no negative time"},
		{"too many blocks", Mooncake,
			`{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}`,
			"f:1: hash_ids: there are more"},
		{
			"two objects", Mooncake,
			`{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": []} {}`,
			"f:1: want one JSON object a line"},
		{"back in time in JSON", Mooncake, mooncakeRow(3000) + mooncakeRow(3000) + mooncakeRow(0),
			"f:3: the time decreases from 3 to 0 s"},
		{"unknown format", "parquet",
			"", `f: unknown trace format "parquet", want one of ["azure" "mooncake" "csv"]`},
		{"half a gzip header", CSV, "\x1f\x8b\x08", "f:1: broken gzip: unexpected EOF"},
		{"gzip cut short", CSV, zipped(head+"0,1,1\n0,1,1\n", 12),
			"f:3: broken gzip: unexpected EOF"},
		{"gzip with a wrong sum", CSV, wrongSum(head + "0,1,1\n"),
			"broken gzip: gzip: invalid checksum"},
		{"gzipped lines cut short", Mooncake, zipped(mooncakeRow(0)+mooncakeRow(1), 9),
			"broken gzip: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("f", c.format, strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func mooncakeRow(ms int) string {
	return fmt.Sprintf(
		`{"timestamp": %d, "input_length": 600, "output_length": 2, "hash_ids": [0, 7]}`, ms) + "\n"
}

// zipped is a text in gzip with its last bytes cut off.
func zipped(text string, cut int) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()[:b.Len()-cut]
}

func wrongSum(text string) string {
	b := []byte(zipped(text, 0))
	b[len(b)-8]++
	return string(b)
}

func TestReadCSV(t *testing.T) {
	const text = "\ufeffprefix_id, class,prefix_tokens,t_s,output_tokens,input_tokens\n" +
		"a,chat,4,10,7,8\n" +
		",\"code, long\",,10.5,1,2\n" +
		"a,chat,3,12.000000001,7,8\n"
	for _, file := range []string{text, zipped(text, 0)} {
		got := collect(read(t, CSV, []byte(file)).Arrivals())
		name := got[0].Prefix
		want := []Arrival{
			{0, "chat", Request{8, 7, name, 4}},
			{500 * time.Millisecond, "code, long", Request{2, 1, nil, 0}},
			{2*time.Second + 1, "chat", Request{8, 7, name, 3}},
		}
		if diff := cmp.Diff(want, got); diff != "" || len(name) != 1 {
			t.Errorf("want -, got +:\n%s", diff)
		}
	}
}

func TestSpanKeepsTheRateWhenRepeated(t *testing.T) {
	tr := read(t, Azure, []byte("t_s,input_tokens,output_tokens\n5,1,1\n6,1,1\n9,1,1\n"))
	if tr.Span() != 6*time.Second || tr.Rate() != 0.5 || tr.Len() != 3 {
		t.Errorf("span %v, rate %v, %d requests", tr.Span(), tr.Rate(), tr.Len())
	}
}

func TestMooncakeSpreadsWithinTicks(t *testing.T) {
	var text strings.Builder
	stamps := []int{0, 0, 0, 3000, 6000, 6000, 60000, 60000}
	for _, ms := range stamps {
		text.WriteString(mooncakeRow(ms))
	}
	var got []time.Duration
	for a, err := range scan("f", Mooncake, strings.NewReader(text.String())) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.At)
		if a.Segment != 512 || !slices.Equal(a.Prefix, []uint64{0, 7}) {
			t.Errorf("prefix %v of %d", a.Prefix, a.Segment)
		}
	}
	if !slices.IsSorted(got) || len(got) != len(stamps) {
		t.Errorf("times %v", got)
	}
	for i, at := range got {
		stamp := time.Duration(stamps[i]) * time.Millisecond
		if at < stamp || at >= stamp+mooncakeTick || i == 3 && at != stamp {
			t.Errorf("request %d of stamp %v came at %v", i, stamp, at)
		}
	}
	if got[0] == got[1] || got[6] == got[7] {
		t.Errorf("requests that share a stamp were not spread: %v", got)
	}
}

func TestRecordedTracesHaveTheirPublishedStatistics(t *testing.T) {
	azure, azureRecorded := azureTrace(t)
	mooncake, mooncakeRecorded := mooncakeTrace(t)
	for _, c := range []struct {
		trace      *Trace
		recorded   bool
		requests   int
		rate       float64
		dispersion [3]float64
		reused     float64
	}{
		{azure, azureRecorded, 19366, 5.53, [3]float64{1.4, 3.9, 16}, 0},
		{mooncake, mooncakeRecorded, 12031, 3.40, [3]float64{1.04, 1.5, 2.9}, 0.366},
	} {
		s := c.trace.Statistics()
		tolerance := 0.05
		if !c.recorded {
			tolerance = 0.4 // one seed of a generator
		} else if s.Requests != c.requests {
			t.Errorf("%s: %d requests, want %d", c.trace.Name(), s.Requests, c.requests)
		}
		check := func(what string, got, want float64) {
			if math.Abs(got-want) > tolerance*want {
				t.Errorf("%s: %s is %v, want %v", c.trace.Name(), what, got, want)
			}
		}
		check("rate", s.Rate, c.rate)
		for i, want := range c.dispersion {
			check("var/mean over "+Windows[i].String(), s.Dispersion[i].VarMean, want)
		}
		blocks, _ := reused(c.trace)
		check("share of blocks seen before", blocks, c.reused)
	}
}

func FuzzRead(f *testing.F) {
	const head = "t_s,input_tokens,output_tokens,class,prefix_id,prefix_tokens\n"
	f.Add(string(CSV), []byte(head+"0,5,2,chat,a,3\n1.5,1,1,,,\n"))
	f.Add(string(CSV), []byte(zipped(head+"0,5,2,chat,a,3\n", 3)))
	f.Add(string(Azure), []byte("t_s,input_tokens,output_tokens\n0,5,2\n0,1e3,0x2p3\n"))
	f.Add(string(Mooncake), []byte(mooncakeRow(0)+mooncakeRow(0)+mooncakeRow(3000)))
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		tr, err := Read("f", Format(format), bytes.NewReader(data))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("error without the file's name: %v", err)
			}
			return
		}
		last := time.Duration(0)
		for a := range All(tr.Arrivals()) {
			if a.At < last || a.At >= tr.Span() || a.Input < 1 || a.Output < 1 {
				t.Fatalf("took %+v after %v in a span of %v", a, last, tr.Span())
			}
			if a.Input <= 1<<20 && len(a.Blocks(nil, 16)) > a.Input/16 {
				t.Fatalf("more blocks than the prompt holds: %+v", a)
			}
			last = a.At
		}
	})
}

func FuzzReadCurve(f *testing.F) {
	f.Add([]byte("t_s,rps\n0,1\n600,2\n"))
	f.Add([]byte("t_s,rps\n0,1\n600,-2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadCurve("f", bytes.NewReader(data), "rps")
		if err != nil {
			return
		}
		if mean := c.meanUntil(c.Period()); math.Abs(mean-1) > 1e-9 {
			t.Fatalf("mean is %v", mean)
		}
		for i := range 10 {
			v := c.At(c.Period() * time.Duration(i) / 9)
			if !(v >= 0) || v > c.highest()*(1+1e-12) {
				t.Fatalf("value %v", v)
			}
		}
	})
}
