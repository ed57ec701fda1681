package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// Options configures Open beyond what an operator configures.
type Options struct {
	// Observe is called after each try of a request: get, put, part, list, delete, create,
	// complete, abort, uploads. Default: none.
	Observe func(request string, took time.Duration, err error)
	// Logger receives reports of failed background work. Default: none.
	Logger *slog.Logger
}

// Bucket is an open prefix of a bucket. It implements segments.Objects; Blobs returns its blobs.
type Bucket struct {
	cfg        Config
	opts       Options
	core       *minio.Core
	creds      *credentials.Credentials
	encryption encrypt.ServerSide
	writing    *room
	reading    *room
	health     health
	guard      guard

	stop    func()
	running sync.WaitGroup // background work: aborts, and the collection of parts
}

// Open checks that the bucket exists and that the credentials are good.
func Open(ctx context.Context, cfg Config, opts Options) (*Bucket, error) {
	b, background, err := open(cfg, opts)
	if err == nil {
		err = b.begin(b.Check(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	b.running.Go(func() { b.collectUntil(background) })
	return b, nil
}

// begin closes a bucket whose first check has failed, and returns why it has.
func (b *Bucket) begin(failed error) error {
	if failed == nil {
		return nil
	}
	failed = b.blameCredentials(failed)
	b.Close()
	return failed
}

// open returns a bucket of which nothing was asked, and the context that ends with it.
func open(cfg Config, opts Options) (*Bucket, context.Context, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	if opts.Observe == nil {
		opts.Observe = func(string, time.Duration, error) {}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	creds, err := newCredentials(cfg)
	if err != nil {
		return nil, nil, err
	}
	transport, err := newTransport(cfg)
	if err != nil {
		return nil, nil, err
	}
	encryption, err := newEncryption(cfg)
	if err != nil {
		return nil, nil, err
	}
	endpoint := &url.URL{Scheme: "https", Host: "s3." + cfg.Region + ".amazonaws.com"}
	if cfg.Endpoint != "" {
		if endpoint, err = url.Parse(cfg.Endpoint); err != nil {
			return nil, nil, err
		}
	}
	lookup := minio.BucketLookupDNS
	if cfg.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(endpoint.Host, &minio.Options{Creds: creds,
		Secure: endpoint.Scheme == "https", Transport: transport, Region: cfg.Region,
		BucketLookup: lookup, MaxRetries: 1})
	if err != nil {
		return nil, nil, err
	}
	background, cancel := context.WithCancel(context.Background())
	stop := func() {
		cancel()
		transport.CloseIdleConnections()
	}
	b := &Bucket{cfg: cfg, opts: opts, core: core, creds: creds, encryption: encryption,
		writing: newRoom(cfg.WriteBytes), reading: newRoom(cfg.ReadBytes), stop: stop}
	return b, background, nil
}

// Close waits for the requests in the background, and ends its work.
func (b *Bucket) Close() error {
	b.stop()
	b.running.Wait()
	return nil
}

// Blobs returns the blobs of the bucket.
func (b *Bucket) Blobs() *Blobs { return &Blobs{b, b.cfg.Prefix + "/blobs/", checkKey} }

// segmentKey returns the name of a segment's object.
func (b *Bucket) segmentKey(name string) string { return b.cfg.Prefix + "/segments/" + name }

// Check returns the reason why the storage can't be used; nil: it can.
func (b *Bucket) Check(ctx context.Context) error {
	_, err := b.readWhole(ctx, b.cfg.Prefix+"/"+MarkerName)
	if errors.Is(err, errNoObject) {
		return nil
	}
	return err
}
