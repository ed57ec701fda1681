package live

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTokensOfAnAnswerAreCounted(t *testing.T) {
	const token = "data: {\"choices\":[{\"text\":\"x\"}]}\n\n"
	for name, c := range map[string]struct {
		text   string
		want   int
		tokens int
		cut    bool
	}{
		"all":                    {strings.Repeat(token, 3) + "data: [DONE]\n\n", 3, 3, false},
		"the end has its event":  {strings.Repeat(token, 4) + "data: [DONE]\n\n", 3, 3, false},
		"the stream breaks off":  {strings.Repeat(token, 2), 3, 2, true},
		"it ends too early":      {token + "data: [DONE]\n\n", 3, 1, true},
		"comments are no tokens": {": x\n\n" + token + "data: [DONE]\n\n", 1, 1, false},
	} {
		firsts := 0
		_, _, tokens, err := readTokens(strings.NewReader(c.text), c.want,
			func(time.Time) { firsts++ })
		if tokens != c.tokens || errors.Is(err, errCut) != c.cut || firsts != 1 {
			t.Errorf("%s: %d tokens, %d of them first, %v", name, tokens, firsts, err)
		}
	}
}
