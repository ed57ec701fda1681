package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/tidefill/tidefill/internal/testservers"
)

// Browser is a page in headless Chromium.
type Browser struct {
	Context context.Context // of chromedp's actions

	mu       sync.Mutex
	faults   []string
	requests []string
}

// NewBrowser starts Chromium, which ends with the test.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	path, err := testservers.Find("chromium")
	if err != nil {
		testservers.Fail(t, err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 1000))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	page, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	b := &Browser{Context: page}
	err = chromedp.Listen(page, b.observe)
	if err == nil {
		_, err = chromedp.Call(page, network.Enable, network.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(page, log.Enable, cdp.Empty{})
	}
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return b
}

func (b *Browser) observe(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.fault(fmt.Sprintf("exception: %s %+v",
			e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.fault(fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text,
				e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError ||
			e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.fault(fmt.Sprintf("console.%s: %+v", e.Type, e.Args))
		}
	}
}

// fault keeps an error, once: the page repeats what it does.
func (b *Browser) fault(text string) {
	if !slices.Contains(b.faults, text) {
		b.faults = append(b.faults, text)
	}
}

// Faults returns the errors and warnings of the page so far.
func (b *Browser) Faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.faults...)
}

// Requests returns the URLs that the page has requested so far.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.requests...)
}

// Open opens a URL and returns when it is loaded.
func (b *Browser) Open(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
}

// Resize gives the page another size, in pixels.
func (b *Browser) Resize(t testing.TB, width, height int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatalf("resize the page: %v", err)
	}
}

// Evaluate returns the value of a JavaScript expression as a string.
func (b *Browser) Evaluate(t testing.TB, expression string) (value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		t.Fatalf("evaluate %s: %v", expression, err)
	}
	return value
}

// Await waits until the text of the first element that matches a selector contains all of the
// parts, and returns it.
func (b *Browser) Await(
	t testing.TB, limit time.Duration, selector string, parts ...string,
) string {
	t.Helper()
	text := ""
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		text = b.Evaluate(t, fmt.Sprintf("document.querySelector(%q)?.innerText", selector))
		found := true
		for _, part := range parts {
			found = found && strings.Contains(text, part)
		}
		if found {
			return text
		}
	}
	t.Fatalf("the page shows %q at %s, want %q; faults: %q", text, selector, parts, b.Faults())
	return ""
}
