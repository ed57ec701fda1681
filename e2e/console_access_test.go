package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axeScript is the file of axe-core, which checks pages by WCAG, below node_modules.
const axeScript = "axe-core/axe.min.js"

// axe returns the serious and critical violations on the page.
func axe(t testing.TB, b *Browser) string {
	t.Helper()
	b.Evaluate(t, "axe.run(document, { resultTypes: ['violations'] }).then((found) => "+
		"window.found = found, (error) => window.found = { violations: [{ id: error.message, "+
		"impact: 'critical', nodes: [] }] }), window.found = null")
	awaitValue(t, b, "window.found !== null", "true")
	return b.Evaluate(t, "window.found.violations.filter((v) => "+
		"['serious', 'critical'].includes(v.impact)).map((v) => v.id + ' at ' + "+
		"v.nodes.map((n) => n.target + ' ' + n.any.map((a) => a.message)).join('; ')).join('\\n')")
}

// tabThrough goes over the page by the key Tab, and returns the controls that it did not reach, or
// that have no name or don't show that they have the focus.
func tabThrough(t testing.TB, b *Browser) string {
	t.Helper()
	b.Evaluate(t, "window.reached = new Set()")
	const missed = "[...document.querySelectorAll('a, button, input, select, summary')]" +
		".filter((e) => e.checkVisibility() && !window.reached.has(e))" +
		".map((e) => e.outerHTML).join()"
	text := b.Evaluate(t, missed)
	for range 100 {
		if err := chromedp.Do(b.Context, chromedp.KeyEvent(kb.Tab)); err != nil {
			t.Fatalf("press Tab: %v", err)
		}
		b.Evaluate(t, "((e) => { if (getComputedStyle(e).outlineStyle !== 'none' && "+
			"(e.innerText || e.labels?.length)) window.reached.add(e); })(document.activeElement)")
		if text = b.Evaluate(t, missed); text == "" {
			break
		}
	}
	return text
}

// setTheme makes the page light or dark.
func setTheme(t testing.TB, b *Browser, theme string) {
	t.Helper()
	if _, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
		t.Fatalf("choose the theme %s: %v", theme, err)
	}
}

// checkAccess runs axe-core in both themes, on a screen and on a phone, and goes to each control of
// the page by the keyboard.
func checkAccess(t testing.TB, b *Browser, page string) {
	t.Helper()
	if err := nodeModules(); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("node/node_modules/" + axeScript)
	if err != nil {
		t.Fatal(err)
	}
	b.Evaluate(t, "(() => { "+string(script)+" })()")
	for _, theme := range []string{"light", "dark"} {
		setTheme(t, b, theme)
		for _, width := range []int64{1440, 390} {
			b.Resize(t, width, 900)
			if found := axe(t, b); found != "" {
				t.Errorf("%q, %s, %d pixels: %s", page, theme, width, found)
			}
			if got := b.Evaluate(t, "document.documentElement.scrollWidth"); got !=
				fmt.Sprint(width) {
				t.Errorf("%q at %d pixels is %s wide: %s", page, width, got, b.Evaluate(t,
					"[...document.querySelectorAll('main *')].filter((e) => "+
						"e.getBoundingClientRect().right > innerWidth).map((e) => "+
						"e.tagName + ' ' + e.className + ' ' + e.innerText).join()"))
			}
		}
	}
	b.Resize(t, 1440, 900)
	if missed := tabThrough(t, b); missed != "" {
		t.Errorf("%q has controls that the keyboard does not reach, or without a name or a sign "+
			"of focus: %s", page, missed)
	}
}

// Everybody can use each page of the console: axe-core finds nothing serious in either theme, on a
// screen and on a phone. Headings, tables and controls have names, and the keyboard reaches them.
func TestConsoleIsAccessible(t *testing.T) {
	t.Parallel()
	gate, admin, dir := make(chan struct{}), freeAddress(t), newRegistryDir(t)
	dir.write("templates.yaml", templateOf("small", "active", "shared", "{type: k8s}")+
		"- name: refused\n")
	d := NewDaemon(t, Options{Admin: admin, Keys: "own=" + ownKey + ",foreign=" + foreignKey,
		Upstreams: []string{newHalfStub(t, "m", gate).URL, startRunner(t, freeAddress(t), "--model",
			"other", "--profile", "instant"), "http://" + freeAddress(t)},
		Set: with("flowcontrol.policy=headroom", "telemetry.every=100ms", "registry.dir="+dir.path,
			"pools=[{name: night, models: [m], role: batch, max: 1}]")})
	batch := d.Client().Submit(t, NewLines("access", "m", 40).Content, `{"deadline":"1m"}`)
	foreign := d.Client()
	foreign.Key = foreignKey
	foreign.Submit(t, NewLines("foreign", "other", 4).Content, "")
	b := NewBrowser(t)
	for _, page := range []struct{ hash, shown, headings string }{
		{"", "#overview", "Tidefill,Pools,Replicas,Templates, profiles and use cases,Batches"},
		{"#pool/m", ".pool .runners", "Tidefill,Pools,m,Replicas," +
			"Templates, profiles and use cases,Batches"},
		{"#batch/" + batch.ID, "#batch table:nth-of-type(4)", "Tidefill,Batch " + batch.ID},
	} {
		b.Open(t, "about:blank")
		b.Open(t, "http://"+admin+"/console"+page.hash)
		b.Await(t, time.Minute, page.shown)
		b.Await(t, time.Minute, "#state", "live")
		checkAccess(t, b, page.hash)
		// What was used is shown from the first line on that has ended.
		if got := b.Evaluate(t, visible("h1, h2:not(#used-title), h3")); got != page.headings {
			t.Errorf("%q has the headings %s", page.hash, got)
		}
		for what, selector := range map[string]string{
			"a column without a scope": "thead th:not([scope=col])",
			"a row without a heading":  "tbody tr:not(:has(> th[scope=row]))",
		} {
			if got := b.Evaluate(t, visible(selector)); got != "" {
				t.Errorf("%q has %s: %s", page.hash, what, got)
			}
		}
	}
	enterKey(t, b, ownKey) // on the page of the batch
	click(t, b, "Cancel")
	b.Await(t, time.Minute, "dialog[open]", "be undone")
	if found := axe(t, b); found != "" {
		t.Errorf("the question: %s", found)
	}
	if err := chromedp.Do(b.Context, chromedp.KeyEvent(kb.Escape)); err != nil {
		t.Fatal(err)
	}
	awaitValue(t, b, "document.querySelectorAll('dialog[open]').length", "0")
	if faults := strings.Join(b.Faults(), "\n"); faults != "" {
		t.Errorf("the page reports %s", faults)
	}
}
