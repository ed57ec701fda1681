package humanize

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"meta-llama/Llama-3 70B, é, 模": "meta-llama/Llama-3 70B, é, 模",
		"👩\u200d💻":                     "👩\u200d💻", // joined emoji
		"\x1b[31mred":                  "\ufffd[31mred",
		"\x1b]0;title\a":               "\ufffd]0;title\ufffd",
		"a\nb\r\tc\x00":                "a\ufffdb\ufffd\ufffdc\ufffd",
		"\u009b31m\x7f":                "\ufffd31m\ufffd",
		"a\u2028b\u2029\u0085":         "a\ufffdb\ufffd\ufffd",
		"\u202eevil\u202c \u2066x\u2069 \u061c\u200e\u200f": "\ufffdevil\ufffd \ufffdx\ufffd " +
			"\ufffd\ufffd\ufffd",
		"\xff\x9b": "\ufffd\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}
