package send

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
)

// variant is a form of a line's request: with what not every runner understands, or without.
type variant struct {
	stream   bool // the answer is streamed, so that its tokens can be seen
	priority bool // the body has the engine's priority
}

// variants lists the forms in which a line is sent. If the runner refuses a part of one, the next
// one without it follows, which shows whether that was the cause.
var variants = []variant{{stream: true, priority: true}, {priority: true}, {stream: true}, {}}

// part is a part of a variant.
type part int

const (
	nothing part = iota
	theStream
	thePriority
)

// refusal is what a runner has refused of a line's variants so far.
type refusal struct {
	part part // of the last variant
	// stream and priority are the statuses with which these parts were refused and left out since;
	// 0: they were not.
	stream, priority int
}

// has reports whether the variant has a part.
func (v variant) has(p part) bool {
	return v.stream && p == theStream || v.priority && p == thePriority
}

// edits returns the edits that make the variant of a line; false: the line has no such variant now.
func (v variant) edits(
	given work.Edits, f *work.Flight, u *upstream.Runner, line *work.Line,
) (change work.Edits, possible bool) {
	change, possible = given, true
	// A queue returns an answer as a whole, so the times of its tokens can't be seen.
	if v.stream && (u.Queued || !f.Start.Stream || u.Streams.IsOff(kindOf(line))) {
		return change, false
	}
	if v.priority {
		change, possible = withPriority(change, line.URL(), u.PriorityValue())
	}
	if v.stream && possible {
		change, possible = forStream(change, line)
	}
	return change, possible
}

// withModel returns the edits with the name that the server has for the line's model.
func withModel(e work.Edits, u *upstream.Runner, line *work.Line) work.Edits {
	name := u.Named(line.Model())
	if name == "" {
		return e
	}
	literal, err := json.Marshal(name)
	if err != nil {
		return e // no text fails
	}
	return e.Overriding(map[string]string{"model": string(literal)})
}

// kindOf returns the kind of a line's answer.
func kindOf(line *work.Line) upstream.AnswerKind {
	return upstream.AnswerKind{URL: line.URL(), Model: line.Model()}
}

// refusesPriority reports whether a runner seems to refuse a body for its priority.
func refusesPriority(outcome plan.Outcome, a openai.Answer) bool {
	return outcome == plan.Refused &&
		bytes.Contains(bytes.ToLower(a.Body), []byte(priorityMember))
}

// avoid has no more lines sent with what a runner refused, since it has answered the line without
// it.
func (t *transport) avoid(
	ctx context.Context, u *upstream.Runner, line *work.Line, refused refusal,
) {
	kind := kindOf(line)
	if refused.stream >= 400 && u.Streams.TurnOff(kind) {
		t.Log.WarnContext(ctx, "a runner refuses requests for streams, sending none from now on",
			"runner", u.Name, "model", kind.Model, "url", kind.URL, "status", refused.stream)
	}
	if refused.priority > 0 && u.RefusePriority() {
		t.Log.WarnContext(ctx, "a runner refuses the member priority, sending none from now on; "+
			"enable priorities in the engine or remove upstreams[].tuning.engine_priority",
			"runner", u.Name, "status", refused.priority)
	}
}
