package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profileCPU writes a CPU profile of the next length of the daemon, if profiles are requested. The
// caller must call wait.
func (d *daemon) profileCPU(
	ctx context.Context, l *environment, name string, length time.Duration,
) (wait func() error) {
	if l.profiles == "" {
		return func() error { return nil }
	}
	kept := make(chan error, 1)
	go func() {
		kept <- d.writeProfile(ctx, l, name+"-cpu", fmt.Sprintf("profile?seconds=%.0f",
			length.Seconds()))
	}()
	return func() error { return <-kept }
}

// profileHeap writes a heap profile of the daemon, if profiles are requested.
func (d *daemon) profileHeap(ctx context.Context, l *environment, name string) error {
	if l.profiles == "" {
		return nil
	}
	return d.writeProfile(ctx, l, name+"-heap", "heap")
}

func (d *daemon) writeProfile(ctx context.Context, l *environment, name, query string) (err error) {
	r, err := http.NewRequestWithContext(ctx, "GET", d.admin+"/debug/pprof/"+query, nil)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	f, err := os.Create(filepath.Join(l.profiles, name+".pprof"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, response.Body)
	return err
}
