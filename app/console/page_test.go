package console

import (
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// minContrast is what WCAG 2 (1.4.3, AA) requires of small text.
const minContrast = 4.5

// Words in a color of the page are readable on cards, in light and in dark.
func TestColorsOfWordsHaveContrast(t *testing.T) {
	text, err := files.ReadFile("page/console.css")
	if err != nil {
		t.Fatal(err)
	}
	css := string(text)
	words := map[string]bool{"ink": true, "muted": true}
	used := regexp.MustCompile(`(?:--tone|[{; ]color): var\(--(\w+)\)`)
	for _, use := range used.FindAllStringSubmatch(css, -1) {
		words[use[1]] = true
	}
	delete(words, "tone")
	roots := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(css, -1)
	if len(roots) != 2 || len(words) < 8 {
		t.Fatalf("%d themes, words in the colors %v", len(roots), words)
	}
	for i, theme := range []string{"light", "dark"} {
		colors := map[string]string{}
		color := regexp.MustCompile(`--(\w+): (#\w+);`)
		for _, c := range color.FindAllStringSubmatch(roots[i][1], -1) {
			colors[c[1]] = c[2]
		}
		for word := range words {
			got := contrast(luminance(t, colors[word]), luminance(t, colors["card"]))
			if got < minContrast {
				t.Errorf("%s: --%s, %s, has a contrast of %.2f on a card, want %.1f", theme, word,
					colors[word], got, minContrast)
			}
		}
	}
}

// Links of the page to the documentation lead to a heading that is there.
func TestLinksToTheDocumentation(t *testing.T) {
	scripts, err := fs.Glob(files, "page/*.js")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`https://github\.com/tidefill/tidefill/blob/main/([^'#]+)#([\w-]+)`)
	found := 0
	for _, name := range scripts {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range link.FindAllStringSubmatch(string(text), -1) {
			page, err := os.ReadFile("../../" + to[1])
			if err != nil {
				t.Fatal(err)
			}
			found++
			heading := `(?im)^#+ ` + strings.ReplaceAll(to[2], "-", " ") + `\W*$`
			if !regexp.MustCompile(heading).Match(page) {
				t.Errorf("%s links to %s, which has no heading %s", name, to[1], to[2])
			}
		}
	}
	if found == 0 {
		t.Error("no script has a link")
	}
}

// Names from outside become text nodes: no script makes markup of a text.
func TestScriptsMakeNoMarkupOfTexts(t *testing.T) {
	scripts, err := fs.Glob(files, "page/*.js")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("scripts %q, %v", scripts, err)
	}
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|` +
		`DOMParser|createContextualFragment|setHTMLUnsafe|eval\(|new Function`)
	for _, name := range scripts {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := markup.Find(text); found != nil {
			t.Errorf("%s uses %s; use h and name of dom.js", name, found)
		}
	}
}

// The page of users adds its files to the API's address, and nothing else.
func TestUsersPageHasFilesOnly(t *testing.T) {
	server := httptest.NewServer(WithUsersPage(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })))
	defer server.Close()
	for of, want := range map[string]int{
		"GET /": 200, "GET /page/users.js": 200, "HEAD /page/api.js": 200, "POST /": 418,
		"POST /page/users.js": 418, "GET /page": 418, "GET /page/": 418, "GET /page/.": 418,
		"GET /page/%2e%2e/": 418, "GET /page/../page.go": 418, "GET /page/nothing": 418,
		"GET /page/users.js/": 418, "GET /page//page/users.js": 418, "GET /page/a%00": 418,
		"GET /v1/page/users.js": 418,
	} {
		method, path, _ := strings.Cut(of, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want || want == 200 != strings.Contains(
			answer.Header.Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s: got %d with %v, want %d", of, answer.StatusCode, answer.Header, want)
		}
	}
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// luminance returns the relative luminance of a color, as WCAG 2 defines it.
func luminance(t *testing.T, color string) (sum float64) {
	t.Helper()
	digits := strings.TrimPrefix(color, "#")
	if len(digits) == 3 {
		digits = digits[:1] + digits[:1] + digits[1:2] + digits[1:2] + digits[2:] + digits[2:]
	}
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		if len(digits) != 6 {
			t.Fatalf("%q is no color", color)
		}
		n, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		share := float64(n) / 255
		if share <= 0.04045 {
			sum += weight * share / 12.92
		} else {
			sum += weight * math.Pow((share+0.055)/1.055, 2.4)
		}
	}
	return sum
}
