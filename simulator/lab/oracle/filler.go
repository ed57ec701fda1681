package oracle

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Pacing is the time that a filler gives an iteration, in milliseconds. It is Margin times what the
// most urgent interactive stream can spare for each of its tokens, but at least Min and at most
// Max.
type Pacing struct{ Margin, Min, Max float64 }

// lineFiller fits batch lines into one engine's iterations. It knows the length of each answer and
// the time that each stream can spare. It decides for every iteration which lines continue in it,
// and keeps what the others have computed at no cost.
type lineFiller struct {
	pacing  Pacing
	model   costmodel.Model
	slo     func(engine.ID) scenario.SLO
	epoch   time.Time // when the scenario begins
	backlog *backlog
	pace    time.Duration // exponential mean of the last iterations
	// start of the iteration in progress
	began time.Time

	active []*line // in the order of their start; at most one is still in prefill
	// blocks of prompts that have been computed here; nothing is ever evicted
	cached     map[engine.Hash]bool // nil: the engine has no prefix cache
	decoding   []*line              // those that decode in the iteration in progress
	chunks     []costmodel.Chunk
	chunkLines []*line // the lines of chunks
}

func (s *lineFiller) Fill(now time.Time, it *engine.Scheduled) engine.Filling {
	s.began = now
	s.decoding, s.chunkLines, s.chunks = s.decoding[:0], s.chunkLines[:0], s.chunks[:0]
	limit := s.limit(now, it) / it.Pace
	load := &iteration{model: s.model, tokens: it.Tokens, ms: s.model.Iteration(
		float64(it.Tokens), float64(it.Context), it.Prefill)}
	tokens, seqs, kv := it.FreeTokens, it.FreeSeqs, it.FreeKV
	filling := engine.Filling{}
	rests := false
	for _, l := range s.active {
		if l.computed < l.prompt {
			continue
		}
		context := l.context()
		cost := load.cost(1) + s.model.KV*float64(context)
		if load.ms+cost > limit || tokens < 1 || seqs < 1 {
			rests = true
			break
		}
		if kv < context+1 { // a younger line may be shorter
			rests = true
			continue
		}
		load.add(1, cost)
		tokens, seqs, kv = tokens-1, seqs-1, kv-context-1
		filling.Decoding++
		filling.Context += context
		s.decoding = append(s.decoding, l)
	}
	if !rests {
		s.read(now, load, limit, tokens, seqs, kv)
	}
	filling.Chunks = s.chunks
	return filling
}

// read starts lines or continues prefill with what is left of an iteration.
func (s *lineFiller) read(now time.Time, load *iteration, limit float64, tokens, seqs, kv int) {
	for seqs > 0 && tokens > 0 {
		l := s.partlyRead()
		if l == nil {
			if l = s.backlog.take(now.Sub(s.epoch), s.pace); l == nil {
				return
			}
			s.active = append(s.active, l)
			l.computed = min(s.cachedTokens(l), l.prompt-1)
		}
		left := l.prompt - l.computed
		each := s.model.C1 + max(0, s.model.C2) + s.model.P1 +
			s.model.P2*float64(l.prompt)
		chunk := min(left, tokens, int((limit-load.ms)/each))
		if chunk < 1 || kv < l.prompt {
			return
		}
		c := costmodel.Chunk{Tokens: chunk, Context: l.computed}
		cost := load.cost(chunk) + s.model.P1*float64(chunk) +
			s.model.P2*float64(chunk)*(float64(l.computed)+
				float64(chunk)/2)
		load.add(chunk, cost)
		s.chunks, s.chunkLines = append(s.chunks, c), append(s.chunkLines, l)
		tokens, seqs, kv = tokens-chunk, seqs-1, kv-l.prompt
		if chunk < left {
			return
		}
		l.computed = l.prompt // by the end of this iteration; Filled counts its first token
	}
}

// partlyRead returns the line in the middle of its prefill, which is the youngest; nil: none.
func (s *lineFiller) partlyRead() *line {
	if n := len(s.active); n > 0 && s.active[n-1].computed < s.active[n-1].prompt {
		return s.active[n-1]
	}
	return nil
}

// cachedTokens returns the number of tokens of a prompt that have been computed here before.
func (s *lineFiller) cachedTokens(l *line) int {
	for i, h := range l.prefix {
		if !s.cached[h] {
			return i * engine.BlockSize
		}
	}
	return len(l.prefix) * engine.BlockSize
}

func (s *lineFiller) Filled(end time.Time) {
	const share = 0.05 // of the last iteration in the mean
	s.pace += time.Duration(share * float64(end.Sub(s.began)-s.pace))
	for i, l := range s.chunkLines {
		if l.computed < l.prompt {
			l.computed += s.chunks[i].Tokens
			continue
		}
		if s.cached != nil {
			for _, h := range l.prefix {
				s.cached[h] = true
			}
		}
		l.produced++
	}
	for _, l := range s.decoding {
		l.produced++
	}
	kept := s.active[:0]
	for _, l := range s.active {
		if l.produced >= l.output {
			s.backlog.done(l)
			continue
		}
		kept = append(kept, l)
	}
	clear(s.active[len(kept):])
	s.active = kept
}

// limit returns the longest time of the iteration, in milliseconds.
func (s *lineFiller) limit(now time.Time, it *engine.Scheduled) float64 {
	const none = 1e9
	spare, unread := none, 0
	least := s.model.C0 + s.model.C1
	var urgent time.Duration // time left for the most urgent prompt
	for i := range it.Streams {
		q := &it.Streams[i]
		slo := s.slo(q.ID)
		if q.FirstToken.IsZero() {
			due := q.Submitted.Add(slo.FirstToken(q.Prompt) - engine.ServerDelay(1)).Sub(now)
			if unread += q.Uncomputed; urgent == 0 || due < urgent {
				urgent = due
			}
			continue
		}
		if q.Output < 2 {
			continue
		}
		each := slo.TPOT - (engine.ServerDelay(1) - engine.ServerDelay(0))
		due := q.FirstToken.Add(time.Duration(q.Output-1) * each).Sub(now)
		ms := due.Seconds() * 1000 / float64(q.Output-q.Produced)
		if ms >= least { // otherwise it is late in any case
			spare = min(spare, ms)
		}
	}
	if unread > 0 && urgent > 0 {
		iterations := 1 + (unread-1)/max(1, it.FreeTokens+it.Tokens-len(it.Streams))
		spare = min(spare, urgent.Seconds()*1000/float64(iterations))
	}
	return min(max(s.pacing.Margin*spare, s.pacing.Min), s.pacing.Max)
}

// iteration is an iteration being put together.
type iteration struct {
	model  costmodel.Model
	tokens int
	ms     float64
}

// cost returns the time that further tokens add, without attention.
func (i *iteration) cost(tokens int) float64 {
	before, after := float64(i.tokens), float64(i.tokens+tokens)
	beyond := max(0, after-i.model.N0) - max(0, before-i.model.N0)
	return i.model.C1*float64(tokens) + i.model.C2*beyond
}

func (i *iteration) add(tokens int, cost float64) {
	i.tokens += tokens
	i.ms += cost
}
