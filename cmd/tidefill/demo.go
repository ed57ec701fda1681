package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/runner/emulator"
)

func demoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work, without a GPU",
		Long: `Start the daemon in front of two emulated model servers that have interactive traffic of their own, run a sample batch
through the API, and show its progress and results. Then it goes on serving until Ctrl-C, for you to try things.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case d.lines < 1:
				return usageErrorf("--lines is %d; give 1 or more", d.lines)
			case d.speedup <= 0:
				return usageErrorf("--speedup is %g; give more than 0", d.speedup)
			case !httpserver.IsLoopback(d.listen):
				return usageErrorf(
					"--listen is %s; the demo asks for no keys, so give it a loopback address",
					d.listen)
			}
			d.out, d.log = cmd.OutOrStdout(),
				slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{
					Level: slog.LevelWarn}))
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.once, "once", false,
		"end when the batch has ended, with the exit status of batch submit --wait")
	cmd.Flags().IntVar(&d.lines, "lines", 300, "how many lines the sample batch has")
	cmd.Flags().StringVar(&d.data, "data", "",
		"`directory` to keep everything in (default: a temporary one, removed at the end)")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:8080",
		"`address` of the API; another port if it is taken")
	cmd.Flags().StringVar(&d.adminListen, "admin-listen", "127.0.0.1:8081",
		"`address` of probes and metrics; another port if it is taken")
	d.sets.register(cmd)
	cmd.Flags().Float64Var(&d.speedup, "speedup", 3,
		"how many `times` faster than real GPUs the emulated ones are")
	return cmd
}

const (
	demoModel   = "demo-70b"
	demoRunners = 2
	demoDrain   = 2 * time.Second // nobody waits for a demo to end
)

type demo struct {
	once                bool
	lines               int
	data                string
	passing             bool // data is removed at the end
	listen, adminListen string
	speedup             float64
	sets                settings

	out io.Writer
	log *slog.Logger
}

func (d *demo) run(ctx context.Context) (err error) {
	settings, err := d.sets.parse()
	if err != nil {
		return err
	}
	cfg, err := config.Load("", settings...)
	if err != nil {
		return err
	}
	if d.data == "" {
		if d.data, err = os.MkdirTemp("", "tidefill-demo-"); err != nil {
			return err
		}
		d.passing = !d.once // what --once says of its results must be true after its end
		if d.passing {
			defer func() { err = errors.Join(err, os.RemoveAll(d.data)) }()
		}
	}
	// The runners outlive the daemon, whose lines they have under way.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	runners, failing := errgroup.WithContext(alive)
	defer func() {
		stop()
		err = errors.Join(err, runners.Wait())
	}()
	cfg.Upstreams = nil
	for i := range demoRunners {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen for an emulated runner: %w", err)
		}
		cfg.Upstreams = append(cfg.Upstreams,
			dispatch.Upstream{URL: "http://" + listener.Addr().String(), Name: fmt.Sprintf(
				"gpu-%d", i+1)})
		runners.Go(func() error { return serveRunner(failing, d.engine(i), listener) })
	}
	cfg.Listen, cfg.AdminListen = d.free(d.listen), d.free(d.adminListen)
	cfg.Data, cfg.Node = d.data, "demo"
	cfg.Shutdown.Drain = demoDrain
	cfg.TLS, cfg.Auth = httpserver.TLSConfig{}, config.Auth{} // only this machine reaches it
	return d.serve(ctx, failing, cfg)
}

// serve runs the daemon, and the batch through it, until ctx ends, a runner fails or the demo has
// finished.
func (d *demo) serve(ctx, failing context.Context, cfg config.Config) error {
	ready := make(chan struct{})
	daemon, err := app.New(cfg, app.Options{Logger: d.log, Version: version(),
		Ready: func() { close(ready) }})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(failing, stop)
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return daemon.Run(ctx) })
	parts.Go(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ready:
		}
		err := d.show(ctx, daemon)
		if d.once {
			stop()
		}
		return err
	})
	return parts.Wait()
}

// engine is an emulated runner with a tide of its own: interactive requests that come and go within
// a minute or so.
func (d *demo) engine(i int) emulator.Config {
	c := emulator.DefaultConfig()
	c.Models = []string{demoModel}
	c.RunnerID = fmt.Sprintf("gpu-%d", i+1)
	c.Seed = uint64(i + 1)
	c.Speedup = d.speedup
	c.Interactive.RPS = 1
	c.Interactive.Swing = 0.8
	c.Interactive.Period = 60
	return c
}

// free returns the address if it can be listened on, or says so and returns one with a free port.
func (d *demo) free(address string) string {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		listener.Close()
		return address
	}
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		return address // the daemon explains
	}
	fmt.Fprintf(d.out, "%s is taken; using another port.\n", address)
	return net.JoinHostPort(host, "0")
}

// show runs the sample batch through the API as any client would.
func (d *demo) show(ctx context.Context, daemon *app.App) error {
	fmt.Fprintf(
		d.out, "tidefill serves at %s, in front of %d emulated runners (a 70B model on four A100 each, %gx real time)\n"+
			"that have interactive traffic of their own. Submitting a batch of %s.\n\n",
		daemon.URL(), demoRunners, d.speedup, humanize.Count(d.lines, "line"))

	sample := sampleBatch(d.lines)
	input := filepath.Join(d.data, "demo.jsonl")
	if err := os.WriteFile(input, sample, 0o644); err != nil {
		return err
	}
	c, err := client.New(daemon.URL(), "", client.Trust{})
	if err != nil {
		return err
	}
	defer c.Close()
	started := time.Now()
	file, err := c.Upload(ctx, filepath.Base(input), bytes.NewReader(sample), int64(len(sample)))
	if err != nil {
		return err
	}
	b, err := c.CreateBatch(ctx, client.NewBatch{
		InputFileID: file.ID, Endpoint: sampleEndpoint,
		CompletionWindow: "1h", Metadata: map[string]string{"project": "demo"},
	})
	if err != nil {
		return err
	}
	if b, err = watch(ctx, c, b, newBatchProgress(d.out).show); err != nil {
		return err
	}
	files, err := download(ctx, c, b, filepath.Join(d.data, "results"))
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s %s after %s: %d done, %d failed.\n", b.ID, b.Status,
		humanize.Duration(time.Since(started)), b.Counts.Completed, b.Counts.Failed)
	for _, name := range files {
		fmt.Fprintf(d.out, "  %s\n", name)
	}
	if b.OutputFileID != "" {
		if err := d.excerpt(files[0]); err != nil {
			return err
		}
	}
	if d.once {
		return ending(b)
	}
	d.suggest(daemon, b, input)
	return nil
}

// excerpt shows a few answers of an output file.
func (d *demo) excerpt(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	results := json.NewDecoder(f)
	fmt.Fprintln(d.out)
	for range 3 {
		var line struct {
			CustomID string `json:"custom_id"`
			Response struct {
				Body struct {
					Choices []struct {
						Message struct{ Content string }
					}
				}
			}
		}
		if err := results.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		answer := ""
		for _, choice := range line.Response.Body.Choices {
			answer += choice.Message.Content
		}
		fmt.Fprintf(d.out, "  %-12s %s\n", line.CustomID, shortened(answer, 90))
	}
	return nil
}

// shortened cuts text to at most n letters on one line.
func shortened(text string, n int) string {
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) <= n {
		return string(letters)
	}
	return string(letters[:n-1]) + "…"
}

func (d *demo) suggest(daemon *app.App, b client.Batch, input string) {
	me := "tidefill"
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") {
		me = "go run ./cmd/tidefill"
	}
	server := ""
	if daemon.URL() != defaultServer {
		server = " --server " + daemon.URL()
	}
	end := ""
	if d.passing {
		end = " (which removes its data; --data DIR keeps them)"
	}
	fmt.Fprintf(d.out, `
The daemon goes on until Ctrl-C`+end+`. Try, in another terminal:

  curl %[1]s/v1/batches/%[2]s
  curl %[1]s/v1/files/%[3]s/content

  %[4]s batch submit %[5]s --wait%[6]s
  %[4]s batch list%[6]s
  %[4]s verify %[2]s%[6]s

or with the OpenAI SDK for Python:

  from openai import OpenAI
  client = OpenAI(base_url="%[1]s/v1", api_key="none")
  file = client.files.create(file=open("%[5]s", "rb"), purpose="batch")
  batch = client.batches.create(input_file_id=file.id, endpoint="%[7]s", completion_window="24h")
  print(client.batches.retrieve(batch.id).request_counts)
`, daemon.URL(), b.ID, b.OutputFileID, me, input, server, sampleEndpoint)
	if admin := daemon.AdminURL(); admin != "" {
		fmt.Fprintf(d.out, "\nProbes and metrics: %[1]s/readyz, %[1]s/metrics\n", admin)
	}
}
