package inline

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/internal/httpserver"
)

// Deps holds the dependencies of a Proxy. Admission and UseCases are required.
type Deps struct {
	Admission Admission
	UseCases  UseCases

	Logger     *slog.Logger          // nil: nothing is logged
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Proxy serves interactive requests.
type Proxy struct {
	deps      Deps
	config    atomic.Pointer[Config]
	transport *http.Transport
	memory    memory
	draws     draws
	metrics   *metrics
	log       *slog.Logger
	errorLog  *log.Logger // of httputil.ReverseProxy
}

const (
	// dialTimeout bounds the time to connect to a runner; see dispatch.
	dialTimeout = 5 * time.Second
	// idleLife is shorter than the 5 s after which uvicorn, which serves vLLM, closes an idle
	// connection. A request that comes at that moment would be lost.
	idleLife = 4 * time.Second
	// maxIdle is no limit: Admission limits the requests of a runner.
	maxIdle = 1 << 16
	// maxAnswerHeader limits the header of an answer, as for lines.
	maxAnswerHeader = 32 << 10
	keepAlive       = 30 * time.Second
	// connBuffer is the size of the two buffers of a connection to a runner. It holds the header of
	// a request and several events of a stream.
	connBuffer = 2 << 10
)

// New returns a Proxy. config must be valid.
func New(config Config, deps Deps) (*Proxy, error) {
	if deps.Admission == nil || deps.UseCases == nil {
		return nil, errors.New("inline: a required field of Deps is not set")
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler)).With("component", "inline")
	metrics, err := newMetrics(deps.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register inline metrics: %w", err)
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	p := &Proxy{
		deps: deps, metrics: metrics, log: deps.Logger,
		errorLog: slog.NewLogLogger(deps.Logger.Handler(), slog.LevelDebug),
		transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    maxIdle,
			ReadBufferSize:         connBuffer,
			WriteBufferSize:        connBuffer,
			IdleConnTimeout:        idleLife,
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: maxAnswerHeader,
			DisableCompression:     true, // answers stay as they were sent
		},
	}
	p.SetConfig(config)
	return p, nil
}

// SetConfig replaces the configuration, which must be valid. Requests in progress keep theirs.
func (p *Proxy) SetConfig(config Config) {
	p.config.Store(&config)
	p.memory.limit.Store(config.Memory)
}

// Close closes idle connections to runners. Requests in progress end as usual.
func (p *Proxy) Close() { p.transport.CloseIdleConnections() }

// Models returns the names of the use cases that a tenant may use.
func (p *Proxy) Models(tenant string) []string { return p.deps.UseCases.Names(tenant) }

// Serve answers a request of a tenant. Its URL is one of those that Config.Enabled lists. If the
// request's context ends before the answer has begun, Serve writes nothing and returns the cause.
//
// Serve calls moved before another process gets the request.
func (p *Proxy) Serve(
	w http.ResponseWriter, r *http.Request, tenant string, moved func(),
) error {
	// A client that has gone takes its request along, also while that waits.
	httpserver.EndWithClient(w)
	// A large body may take longer than those of the API. Its minimum rate still holds.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	x := &exchange{proxy: p, config: p.config.Load(), w: w, in: r, tenant: tenant, moved: moved,
		began: time.Now()}
	defer x.end()
	if f := x.accept(); f != nil {
		x.refuse(w, f)
		return x.gone
	}
	reverse := httputil.ReverseProxy{
		Rewrite: x.rewrite, Transport: x, ModifyResponse: x.modify, ErrorHandler: x.fail,
		ErrorLog: p.errorLog, BufferPool: buffers{},
	}
	reverse.ServeHTTP(w, r)
	return x.gone
}

// copyBuffer is the size of the buffer through which an answer passes. Each stream that waits for
// tokens has one, so it is small.
const copyBuffer = 2 << 10

var bufferPool = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// buffers implements httputil.BufferPool.
type buffers struct{}

func (buffers) Get() []byte { return bufferPool.Get().(*[copyBuffer]byte)[:] }

func (buffers) Put(b []byte) { bufferPool.Put((*[copyBuffer]byte)(b)) }
