package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// streamed is what makes a request a stream, as the first fields of its body.
const streamed = `"stream":true,"stream_options":{"include_usage":true},`

// streamLines is the most lines of a run of benchStreams. Each has some twenty events.
const streamLines = 20_000

// benchStreams compares the CPU time of a line with streams off, for some lines and for all with
// that of the bare loop, which reads plain answers, and then streams.
func benchStreams(ctx context.Context, l *environment) ([]figure, error) {
	lines := min(streamLines, l.sizes.dispatchLines)
	path, err := l.writeBatchFile("streams.jsonl", lines, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	up, err := l.startStreamingUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	bare, err := l.startLoop(ctx, path)
	if err != nil {
		return nil, err
	}
	defer bare.kill()

	b := streamBench{comparison: comparison{environment: l, up: up, bare: bare,
		concurrency: l.sizes.streamsInFlight, lines: lines}, used: map[string][]float64{}}
	for _, streams := range []string{"off", "some", "all"} {
		if err := b.daemon(ctx, path, streams); err != nil {
			return nil, fmt.Errorf("streams: %s: %w", streams, err)
		}
	}
	return b.figures(), nil
}

// streamBench measures the CPU time of a line, in microseconds, of each side.
type streamBench struct {
	comparison
	used map[string][]float64 // of a daemon by its streams and of loops by loopOf, for each run
	some float64              // share of lines that are streamed where only some are
}

// daemon measures a daemon and, in turns, the two bare loops.
func (b *streamBench) daemon(ctx context.Context, path, streams string) error {
	data, err := b.newDir("streams")
	if err != nil {
		return err
	}
	d, err := b.startDaemon(ctx, data, b.up.url, "flowcontrol.policy=headroom",
		"flowcontrol.shared=false", "flowcontrol.headroom.streams="+streams,
		fmt.Sprintf("flowcontrol.headroom.per_pool=%d", b.concurrency))
	if err != nil {
		return err
	}
	defer d.kill()
	file, err := d.upload(ctx, path)
	if err != nil {
		return err
	}
	url := b.up.url + "/v1/chat/completions"
	plain := func() error { return b.bare.post(url, b.concurrency, b.lines) }
	streaming := func() error { return b.bare.postStreamed(url, b.concurrency, b.lines) }
	batch := func() error { return b.complete(ctx, d, file) }
	for _, warm := range []func() error{plain, streaming, b.warm(ctx, batch)} {
		if err := warm(); err != nil {
			return err
		}
	}
	for i := range b.runs {
		b.logf("dispatch with streams %s: run %d of %d", streams, i+1, b.runs)
		for _, side := range []struct {
			name string
			of   *process
			work func() error
		}{
			{loopOf(streams, "plain"), b.bare.process, plain},
			{loopOf(streams, "streams"), b.bare.process, streaming},
			{streams, d.process, batch},
		} {
			m, err := b.measure(ctx, side.of, side.work)
			if err != nil {
				return err
			}
			b.used[side.name] = append(b.used[side.name], microseconds(m.cpu)/float64(b.lines))
			switch side.name {
			case "off", "all":
				if want := map[string]float64{"all": 1}[side.name]; m.streamed != want {
					return fmt.Errorf("%.3f of the lines were streamed, want %.0f", m.streamed,
						want)
				}
			case "some":
				b.some = m.streamed
			}
		}
	}
	return nil
}

// loopOf names the bare loop that is measured in turns with a daemon.
func loopOf(streams, kind string) string { return kind + " loop beside " + streams }

// warm clears what the upstream saw, so that the batch awaits lines of its own.
func (b *streamBench) warm(ctx context.Context, batch func() error) func() error {
	return func() error {
		if err := b.up.clear(ctx); err != nil {
			return err
		}
		return batch()
	}
}

func (b *streamBench) figures() (all []figure) {
	for _, streams := range []string{"off", "some", "all"} {
		f := b.ratio("CPU per line of the bare loop's, streams: "+streams, streams,
			loopOf(streams, "plain"))
		if streams == "some" {
			f.Detail += fmt.Sprintf("; %.0f %% streamed", 100*b.some)
		}
		all = append(all, f)
	}
	return append(all,
		b.ratio("CPU per line of the bare loop's that reads streams, streams: all", "all",
			loopOf("all", "streams")),
		b.ratio("CPU per line of the bare loop that reads streams, of the plain one's",
			loopOf("all", "streams"), loopOf("all", "plain")))
}

// ratio returns the figure of the ratios of all runs of two sides.
func (b *streamBench) ratio(what, side, against string) figure {
	f := figure{What: what}
	for i, used := range b.used[side] {
		f.Values = append(f.Values, used/b.used[against][i])
	}
	f.Detail = fmt.Sprintf("%s against %s µs", number(median(b.used[side])),
		number(median(b.used[against])))
	return f
}

// answerStream sends the tokens of answerBody as a runner streams them, each when it is there.
func answerStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	send := func(event string) {
		io.WriteString(w, "data: "+event+"\n\n")
		flusher.Flush()
	}
	const head = `{"id":"chatcmpl-8f1c2a6e0b7d4f3aa1f0c9d2","object":"chat.completion.chunk",` +
		`"created":1767225600,"model":"llama-70b","choices":[`
	for _, word := range streamedWords {
		send(head + `{"index":0,"delta":{"content":"` + word + `"},"logprobs":null,` +
			`"finish_reason":null}]}`)
	}
	send(head + `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`)
	send(head + `],"usage":{"prompt_tokens":86,"completion_tokens":21,"total_tokens":107}}`)
	send("[DONE]")
}

// streamedWords is the text of answerBody in parts, about as many as its tokens.
var streamedWords = strings.SplitAfter(
	"The quick brown fox jumps over the lazy dog, and that is all there is to say.", " ")

// postStream asks for a stream and reads its events to the end.
func postStream(client *http.Client, url string, body []byte) error {
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	done := false
	for {
		line, err := lines.ReadSlice('\n')
		done = done || bytes.HasPrefix(line, []byte("data: [DONE]"))
		switch {
		case err == io.EOF && done:
			return nil
		case err != nil:
			return fmt.Errorf("read a stream: %w", err)
		}
	}
}
