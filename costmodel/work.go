package costmodel

import "github.com/tidefill/tidefill/internal/portable"

// LineWork returns the work of a request of the given numbers of tokens, in milliseconds of engine
// iteration, so that requests with long prompts and requests with long answers can be compared. It
// leaves out C0, which all requests of an iteration share.
func (m Model) LineWork(prompt, output int) float64 {
	in, out := float64(prompt), float64(output)
	decode := m.C1 + portable.Rounded(m.KV*(in+portable.Rounded(out/2)))
	return portable.Rounded(m.PromptToken(in)*in) + portable.Rounded(decode*out)
}
