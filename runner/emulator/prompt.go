package emulator

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/tidefill/tidefill/simulator/engine"
)

// bytesPerToken estimates tokens without a tokenizer.
const bytesPerToken = 3.6

// tokensPerPart is the size of a content part other than text, such as an image.
const tokensPerPart = 300

// prompt is the input of a sequence.
type prompt struct {
	data  []byte // text, or token ids of eight bytes each
	ids   bool
	extra int // tokens in addition to the data
}

func (p prompt) tokens() int {
	if p.ids {
		return max(1, len(p.data)/8+p.extra)
	}
	return max(1, int((float64(len(p.data))+bytesPerToken-1)/bytesPerToken)+p.extra)
}

// blocks hashes the prompt's full KV blocks; salt separates scopes of the cache.
func (p prompt) blocks(salt uint64) []engine.Hash {
	bytesPerBlock := bytesPerToken * engine.BlockSize
	if p.ids {
		bytesPerBlock = 8 * engine.BlockSize
	}
	n := int(float64(len(p.data)) / bytesPerBlock)
	blocks := make([]engine.Hash, n)
	h, from := hash(fnvOffset^salt, ""), 0
	for i := range blocks {
		to := int(float64(i+1) * bytesPerBlock)
		h = hash(h, p.data[from:to])
		blocks[i] = engine.Hash(mix(h))
		from = to
	}
	return blocks
}

func text(s string) prompt { return prompt{data: []byte(s)} }

func tokenIDs(ids []int64) prompt {
	p := prompt{ids: true, data: make([]byte, 0, 8*len(ids))}
	for _, id := range ids {
		p.data = binary.LittleEndian.AppendUint64(p.data, uint64(id))
	}
	return p
}

// message is an item of a conversation.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func conversation(messages []message) (prompt, error) {
	var p prompt
	for _, m := range messages {
		p.data = append(append(p.data, m.Role...), '\n')
		if err := p.add(m.Content); err != nil {
			return p, err
		}
		p.data = append(p.data, '\n')
	}
	return p, nil
}

var errContent = errors.New("content must be a string or an array of parts")

// add appends content: nothing, a string, or parts.
func (p *prompt) add(content json.RawMessage) error {
	switch firstByte(content) {
	case 0, 'n':
		return nil
	case '"':
		s, err := unquote(content)
		p.data = append(p.data, s...)
		return err
	}
	var parts []part
	if json.Unmarshal(content, &parts) != nil {
		return errContent
	}
	for _, c := range parts {
		if c.Text == "" && c.Type != "text" && c.Type != "input_text" && c.Type != "output_text" {
			p.extra += tokensPerPart
		}
		p.data = append(p.data, c.Text...)
	}
	return nil
}

var errInput = errors.New(
	"must be a string, an array of strings, an array of token ids, or an array of such arrays")

// inputs reads the input of completions, embeddings and moderations: one input or several, each
// text or token ids.
func inputs(raw json.RawMessage) ([]prompt, error) {
	switch firstByte(raw) {
	case '"':
		s, err := unquote(raw)
		if err != nil {
			return nil, errInput
		}
		return []prompt{{data: s}}, nil
	case '[':
	default:
		return nil, errInput
	}
	var ids []int64
	if json.Unmarshal(raw, &ids) == nil {
		if len(ids) == 0 {
			return nil, errInput
		}
		return []prompt{tokenIDs(ids)}, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, errInput
	}
	all := make([]prompt, 0, len(items))
	for _, item := range items {
		var one prompt
		switch firstByte(item) {
		case '"':
			if err := one.add(item); err != nil {
				return nil, errInput
			}
		case '[':
			if json.Unmarshal(item, &ids) != nil {
				return nil, errInput
			}
			one = tokenIDs(ids)
		case '{':
			if err := one.add(bytes.Join([][]byte{{'['}, item, {']'}}, nil)); err != nil {
				return nil, errInput
			}
		default:
			return nil, errInput
		}
		all = append(all, one)
	}
	return all, nil
}

// unquote returns the text of a valid JSON string. Most have no escapes and are returned as they
// are.
func unquote(raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errContent
	}
	return []byte(s), nil
}

// firstByte returns the first byte of a JSON value; 0 if there is none.
func firstByte(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}
