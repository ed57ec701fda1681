package places

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/s3"
)

// The backends of storages.
const (
	amazon = "s3"
	minio  = "minio"
	gcs    = "gcs"
	tos    = "tos"
	local  = "local"
)

// Memory of the writers and readers of one bucket. It is less than a bucket of the backend has,
// since one file is written at a time, and a profile's bucket is one of several.
const (
	writeMemory = 32 << 20
	readMemory  = 16 << 20
	// bucketTries is less than the backend's too: the end of a batch is tried again anyway.
	bucketTries = 2
)

// connect opens a storage.
func (o *Options) connect(ctx context.Context, key placeKey, found secret) (*client, error) {
	if key.Backend == local && !key.shared {
		return o.openDirectory(key.Bucket)
	}
	cfg, err := bucketConfig(key.Storage, found)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, setup("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if key.shared {
		shared, err := s3.OpenShared(ctx, cfg, key.below, s3.Options{Logger: o.Logger})
		if err != nil {
			return nil, err
		}
		return &client{Blobs: shared, secret: found.state, check: shared.Check,
			checkWrite: shared.CheckWrite, close: shared.Close}, nil
	}
	bucket, err := s3.Open(ctx, cfg, s3.Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &client{Blobs: bucket.Blobs(), secret: found.state, check: bucket.Check,
		close: bucket.Close}, nil
}

// bucketConfig returns the settings of a bucket. What the profile says wins over the Secret.
func bucketConfig(s store.Storage, found secret) (cfg s3.Config, err error) {
	cfg = s3.DefaultConfig()
	cfg.WriteBytes, cfg.ReadBytes, cfg.Tries = writeMemory, readMemory, bucketTries
	cfg.AccessKeyFile, cfg.SecretKeyFile = found.accessKeyFile, found.secretKeyFile
	cfg.Bucket = cmp.Or(s.Bucket, found.bucket)
	cfg.Endpoint = cmp.Or(s.EndpointURL, found.endpoint)
	region := cmp.Or(s.Region, found.region)
	switch s.Backend {
	case amazon:
		cfg.PathStyle = cfg.Endpoint != ""
	case minio:
		if cfg.Endpoint == "" {
			return cfg, setup("the profile has no storage.endpoint_url, which minio needs")
		}
		cfg.PathStyle = true
	case gcs:
		cfg.Endpoint = cmp.Or(cfg.Endpoint, "https://storage.googleapis.com")
		cfg.PathStyle, cfg.Checksum = true, md5
		region = cmp.Or(region, "auto")
	case tos:
		if cfg.Endpoint, region, err = tosEndpoint(cfg.Endpoint, region); err != nil {
			return cfg, err
		}
		cfg.PathStyle, cfg.Checksum = isAddress(cfg.Endpoint), md5
	default:
		return cfg, setup("the daemon does not know the backend %q of storages", s.Backend)
	}
	cfg.Region = cmp.Or(region, cfg.Region)
	return cfg, nil
}

// md5 is the checksum of storages that may not know crc32c.
const md5 = "md5"

// tosDomains are those of the endpoints of TOS. One for S3 is tos-s3-REGION, one of its own API is
// tos-REGION.
var tosDomains = []string{".volces.com", ".ivolces.com"}

// tosEndpoint returns the URL of the endpoint of TOS for S3, and its region.
func tosEndpoint(endpoint, region string) (string, string, error) {
	if endpoint == "" {
		if region == "" {
			return "", "", setup("neither its settings nor its Secret has an endpoint or a region")
		}
		endpoint = "tos-s3-" + region + tosDomains[0]
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	scheme, host, _ := strings.Cut(endpoint, "://")
	for _, domain := range tosDomains {
		name, is := strings.CutSuffix(strings.TrimRight(host, "/"), domain)
		if own, ours := strings.CutPrefix(name, "tos-"); is && ours {
			own = strings.TrimPrefix(own, "s3-")
			return scheme + "://tos-s3-" + own + domain, cmp.Or(region, own), nil
		}
	}
	return endpoint, region, nil
}

// isAddress reports whether the host of a URL is an address, which can't have the bucket's name
// before it.
func isAddress(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err == nil || u.Hostname() == "localhost"
}

// openDirectory opens a directory. It creates the directory if its parent exists.
func (o *Options) openDirectory(dir string) (*client, error) {
	if !filepath.IsAbs(dir) {
		return nil, setup("the directory of the profile's storage is not an absolute path")
	}
	dir = filepath.Clean(dir)
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: create the parent of directory %s, or mount it",
			store.ErrUnavailable, dir)
	}
	if info, err := os.Stat(dir); o.Existing && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("%w: directory %s does not exist", store.ErrUnavailable, dir)
	}
	inside, err := isInside(dir, o.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if inside {
		return nil, setup("its directory is inside the data directory of the daemon")
	}
	opened, err := disk.Open(dir, disk.Options{Logger: o.Logger})
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: give user %d write access to directory %s and all in it",
			store.ErrRefused, os.Geteuid(), dir)
	}
	if err != nil {
		//nolint:errorlint // it hides ErrNotFound: no object of a user is missing
		return nil, fmt.Errorf("%w: %v", store.ErrUnavailable, err)
	}
	return &client{Blobs: opened.Blobs(),
		check: func(context.Context) error { return opened.Available() },
		close: opened.Close}, nil
}

// isInside reports whether a directory is another one or inside it, links resolved. The directory
// need not exist; its parent must.
func isInside(dir, other string) (bool, error) {
	if other == "" {
		return false, nil
	}
	other, err := filepath.Abs(other)
	if err == nil {
		other, err = filepath.EvalSymlinks(other)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if real, err = filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			real = filepath.Join(real, filepath.Base(dir))
		}
	}
	if err != nil {
		return false, err
	}
	path, err := filepath.Rel(other, real)
	return err == nil && path != ".." && !strings.HasPrefix(path, ".."+string(filepath.Separator)),
		nil
}
