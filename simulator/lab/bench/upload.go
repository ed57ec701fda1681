package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// benchUpload compares an upload with one to a handler that only writes and syncs, on the same
// disk.
func benchUpload(ctx context.Context, l *environment) ([]figure, error) {
	path, err := l.writeBatchFile("upload.jsonl", l.sizes.uploadLines, lineBytes)
	if err != nil {
		return nil, err
	}
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	data, err := l.newDir("upload")
	if err != nil {
		return nil, err
	}
	d, err := l.startDaemon(ctx, data, up.url)
	if err != nil {
		return nil, err
	}
	defer d.kill()
	sink, sinkURL, err := l.startSink(ctx, filepath.Join(l.dir, "sink"))
	if err != nil {
		return nil, err
	}
	defer sink.kill()

	toSink := func() (time.Duration, error) {
		begun := time.Now()
		err := sendFile(ctx, sinkURL, path, nil)
		return time.Since(begun), err
	}
	toDaemon := func() (time.Duration, error) {
		begun := time.Now()
		file, err := d.upload(ctx, path)
		took := time.Since(begun)
		if err != nil {
			return 0, err
		}
		return took, ask(ctx, "DELETE", d.url+"/v1/files/"+file, nil, nil)
	}
	what := fmt.Sprintf("Upload and validation of %d MB, %s lines, against writing alone",
		l.sizes.uploadLines*lineBytes/1_000_000, grouped(l.sizes.uploadLines))
	f := figure{What: what, Goal: atMost(1.5)}
	var ours, theirs []float64
	profiled := d.profileCPU(ctx, l, "upload", 5*time.Second)
	for i := range l.runs {
		l.logf("upload: run %d of %d", i+1, l.runs)
		// In both orders, so that neither side is always first.
		var bare, daemon time.Duration
		for _, turn := range []struct {
			send func() (time.Duration, error)
			sum  *time.Duration
		}{{toSink, &bare}, {toDaemon, &daemon}, {toDaemon, &daemon}, {toSink, &bare}} {
			took, err := turn.send()
			if err != nil {
				return nil, err
			}
			*turn.sum += took / 2
		}
		ours, theirs = append(ours, daemon.Seconds()), append(theirs, bare.Seconds())
		f.Values = append(f.Values, daemon.Seconds()/bare.Seconds())
	}
	f.Detail = fmt.Sprintf("%s against %s s", number(median(ours)), number(median(theirs)))
	return []figure{f}, profiled()
}
