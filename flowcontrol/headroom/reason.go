package headroom

import "github.com/tidefill/tidefill/flowcontrol"

// Reasons of the policy headroom.
const (
	ReasonPacked      flowcontrol.Reason = "packed"
	ReasonFirstToken  flowcontrol.Reason = "first_token"
	ReasonLateLines   flowcontrol.Reason = "late_lines"  // more would make too many requests late
	ReasonLate        flowcontrol.Reason = "late"        // the budget of late requests is spent
	ReasonTokenTime   flowcontrol.Reason = "token_time"  // iterations take as long as they may
	ReasonSlots       flowcontrol.Reason = "slots"       // the engine's other sequences stay free
	ReasonKV          flowcontrol.Reason = "kv"          // the rest of the KV cache stays free
	ReasonQueue       flowcontrol.Reason = "queue"       // interactive requests wait there
	ReasonBrake       flowcontrol.Reason = "brake"       // interactive requests suffer
	ReasonAging       flowcontrol.Reason = "aging"       // no recent observation of the runner
	ReasonStale       flowcontrol.Reason = "stale"       // no observation of it for longer
	ReasonUnreachable flowcontrol.Reason = "unreachable" // lines break there
)
