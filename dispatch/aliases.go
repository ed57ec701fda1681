package dispatch

import "github.com/tidefill/tidefill/dispatch/upstream"

// Upstream is what the configuration and the readers of metrics know of an upstream.
type Upstream = upstream.Upstream

// Dialect says what an upstream understands beyond the OpenAI API.
type Dialect = upstream.Dialect

// ModeGateway is the Mode of an upstream with several engines behind its address.
const ModeGateway = upstream.ModeGateway

// EngineRunner returns the name of the runner that stands for an engine behind a gateway.
func EngineRunner(gateway, engine string) string { return upstream.EngineRunner(gateway, engine) }

// EngineName returns the name of an entry of Upstream.Engines: the host, the port and an unusual
// path of a metrics page. It is empty for a regular expression.
func EngineName(entry string) (name string, err error) { return upstream.EngineName(entry) }
