package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
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

// startLimit bounds the start of a server.
const startLimit = 30 * time.Second

// Server is a running object storage.
type Server struct {
	URL string
	// Directory holds the objects of versitygw as files: the object KEY of the bucket is
	// Directory/Bucket/KEY.
	Directory string

	address string
	command []string
	log     lockedBuffer
	process *exec.Cmd
	ended   chan struct{}
}

// Start starts versitygw, which keeps objects in a directory. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := versitygw(t.TempDir())
	if err != nil {
		t.Fatal(err)
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
	program, err := testservers.Find("versitygw")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address, Directory: filepath.Join(root, "objects"),
		address: address}
	// Metadata is beside the objects, since not every file system has extended attributes.
	sidecar := filepath.Join(root, "metadata")
	for _, dir := range []string{s.Directory, sidecar} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	s.command = append([]string{program, "--access", AccessKey, "--secret", SecretKey, "--port",
		address, "--quiet", "--keep-alive"}, options...)
	s.command = append(s.command, "posix", "--sidecar", sidecar, s.Directory)
	return s, nil
}

// StartGofakes3 starts gofakes3, which keeps objects in memory. It ends with the test.
func StartGofakes3(t testing.TB) *Server {
	t.Helper()
	program := testservers.Program(t, "gofakes3")
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + address, address: address,
		command: []string{program, "-listen", address}}
	s.begin(t)
	return s
}

// begin starts the process, creates the bucket, and has both end with the test.
func (s *Server) begin(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(s.command[0]), s.log.tail())
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
func (s *Server) Resume() error {
	// The path of each argument is the server's own; nothing of it comes from outside.
	s.process = exec.Command(s.command[0], s.command[1:]...)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.command[0], err)
	}
	s.ended = make(chan struct{})
	go func(p *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = p.Wait() // servers are killed
	}(s.process, s.ended)
	for deadline := time.Now().Add(startLimit); ; {
		response, err := http.Get(s.URL + "/")
		if err == nil {
			return response.Body.Close()
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s has ended:\n%s", s.command[0], s.log.tail())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s does not answer:\n%s", s.command[0], s.log.tail()),
				err)
		}
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		<-s.ended
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

// freeAddress returns an address of the loopback interface on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// lockedBuffer collects the output of a server.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// tail returns the end of the output.
func (l *lockedBuffer) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.b.Bytes()
	return string(b[max(0, len(b)-4096):])
}
