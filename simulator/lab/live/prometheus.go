package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// prometheusServer scrapes the gateway, as the one beside a pool does.
type prometheusServer struct {
	program, dir, address string
	process               *process
}

// startPrometheus starts a Prometheus that scrapes a target.
func startPrometheus(
	ctx context.Context, program, dir, target string, every time.Duration,
) (*prometheusServer, error) {
	program, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w; install Debian's package prometheus, or give its "+
			"path by --prometheus", err)
	}
	address, err := testservers.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "prometheus")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config := fmt.Sprintf("global: {scrape_interval: %s}\nscrape_configs:\n"+
		"- {job_name: gateway, static_configs: [{targets: [%q]}]}\n",
		every, target)
	err = os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o644)
	if err != nil {
		return nil, err
	}
	p := &prometheusServer{program: program, dir: dir, address: address}
	return p, p.launch(ctx)
}

func (p *prometheusServer) launch(ctx context.Context) (err error) {
	p.process, err = startProcess(p.program, []string{
		"--config.file=" + filepath.Join(p.dir, "prometheus.yml"),
		"--storage.tsdb.path=" + filepath.Join(p.dir, "data"),
		"--web.listen-address=" + p.address, "--log.level=error"}, nil)
	if err != nil {
		return err
	}
	return p.process.await(ctx, func(ctx context.Context) error {
		_, err := fetch(ctx, p.url()+"/-/ready")
		return err
	})
}

func (p *prometheusServer) url() string { return "http://" + p.address }
