package s3

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tidefill/tidefill/internal/testservers"
)

// The keys of every server.
const (
	AccessKey = "test-access-key"
	SecretKey = "test-secret-key"
)

// Bucket is the bucket that every server has.
const Bucket = "tidefill-test"

// startLimit bounds the creation of the bucket.
const startLimit = 30 * time.Second

// Server is a running object storage.
type Server struct {
	URL string
	// Directory holds the objects of versitygw as files: the object KEY of the bucket is
	// Directory/Bucket/KEY.
	Directory string

	address string
	program testservers.Program
	process *testservers.Process
}

// Start starts versitygw, which keeps objects in a directory. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := versitygw(t.TempDir())
	if err != nil {
		testservers.Fail(t, err)
	}
	s.begin(t)
	return s
}

// Run starts versitygw for a program that is not a test, with its objects in a directory. It writes
// a row for each request into the file accessLog, and ends with end, or with the program.
func Run(directory, accessLog string) (s *Server, end func(), err error) {
	if s, err = versitygw(directory, "--access-log", accessLog); err != nil {
		return nil, nil, err
	}
	if err = s.Resume(); err == nil {
		err = s.createBucket()
	}
	if err != nil {
		s.Kill()
		return nil, nil, fmt.Errorf("start versitygw: %w", err)
	}
	return s, s.Kill, nil
}

// versitygw returns a server that does not run yet.
func versitygw(root string, options ...string) (*Server, error) {
	s, err := newServer("versitygw")
	if err != nil {
		return nil, err
	}
	s.Directory = filepath.Join(root, "objects")
	// Metadata is beside the objects, since not every file system has extended attributes.
	sidecar := filepath.Join(root, "metadata")
	for _, dir := range []string{s.Directory, sidecar} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	s.program.Args = append([]string{"--access", AccessKey, "--secret", SecretKey, "--port",
		s.address, "--quiet", "--keep-alive"}, options...)
	s.program.Args = append(s.program.Args, "posix", "--sidecar", sidecar, s.Directory)
	return s, nil
}

// newServer returns a server that has an address and no arguments.
func newServer(name string) (*Server, error) {
	path, err := testservers.Find(name)
	if err != nil {
		return nil, err
	}
	address, err := testservers.FreeAddress()
	return &Server{URL: "http://" + address, address: address,
		program: testservers.Program{Path: path, Log: &testservers.Log{}}}, err
}

// StartGofakes3 starts gofakes3, which keeps objects in memory. It ends with the test.
func StartGofakes3(t testing.TB) *Server {
	t.Helper()
	s, err := newServer("gofakes3")
	if err != nil {
		testservers.Fail(t, err)
	}
	s.program.Args = []string{"-listen", s.address}
	s.begin(t)
	return s
}

// begin starts the process, creates the bucket, and has both end with the test.
func (s *Server) begin(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(s.program.Path), s.program.Log.Tail())
		}
	})
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := s.createBucket(); err != nil {
		t.Fatalf("create a bucket: %v", err)
	}
}

// Resume starts the server again after Kill, on the same address. What gofakes3 had is lost.
func (s *Server) Resume() (err error) {
	s.process, err = s.program.Start(func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	return err
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.process != nil {
		_ = s.process.Stop()
	}
}

func (s *Server) createBucket() error {
	client, err := minio.New(s.address, &minio.Options{Region: "us-east-1",
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), MaxRetries: 1})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return client.MakeBucket(ctx, Bucket, minio.MakeBucketOptions{})
}

// Secrets writes the keys into files, and returns their paths.
func Secrets(t testing.TB) (accessKeyFile, secretKeyFile string) {
	t.Helper()
	dir := t.TempDir()
	accessKeyFile, secretKeyFile = filepath.Join(dir, "access"), filepath.Join(dir, "secret")
	for path, content := range map[string]string{accessKeyFile: AccessKey,
		secretKeyFile: SecretKey} {
		if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return accessKeyFile, secretKeyFile
}
