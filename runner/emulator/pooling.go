package emulator

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
)

// The routes below generate no text. Their sequences take one pass through the engine; the result
// follows from the text's hash.

// defaultDimensions is the length of an embedding if the request does not set it.
const defaultDimensions = 256

type pooledUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

func (a *answer) pooledUsage() pooledUsage {
	n := a.promptTokens()
	return pooledUsage{n, n}
}

// unit returns the i-th number, 0 to 1, that follows from a sequence's content.
func (q sequence) unit(i int) float64 {
	return float64(mix(q.seed+uint64(i))>>11) / (1 << 53)
}

// embeddingReply is /v1/embeddings.
type embeddingReply struct{}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or their little-endian bytes in base64
}

func (embeddingReply) whole(a *answer) []byte {
	out := struct {
		Object string      `json:"object"`
		Data   []embedding `json:"data"`
		Model  string      `json:"model"`
		Usage  pooledUsage `json:"usage"`
	}{"list", nil, a.Model, a.pooledUsage()}
	for i, q := range a.sequences {
		e := embedding{Object: "embedding", Index: i}
		vector := q.vector(a.Dimensions)
		e.Embedding = vector
		if a.EncodingFormat == "base64" {
			raw := make([]byte, 0, 4*len(vector))
			for _, x := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			e.Embedding = base64.StdEncoding.EncodeToString(raw)
		}
		out.Data = append(out.Data, e)
	}
	return mustJSON(out)
}

// vector returns a vector of length 1.
func (q sequence) vector(dimensions int) []float32 {
	if dimensions == 0 {
		dimensions = defaultDimensions
	}
	v, norm := make([]float64, dimensions), 0.0
	for i := range v {
		v[i] = 2*q.unit(i) - 1
		norm += v[i] * v[i]
	}
	out := make([]float32, dimensions)
	for i := range v {
		out[i] = float32(v[i] / math.Sqrt(norm))
	}
	return out
}

// moderationReply is /v1/moderations.
type moderationReply struct{}

var moderationCategories = []string{
	"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
	"illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence",
	"violence/graphic",
}

type moderation struct {
	Flagged    bool               `json:"flagged"`
	Categories map[string]bool    `json:"categories"`
	Scores     map[string]float64 `json:"category_scores"`
}

func (moderationReply) whole(a *answer) []byte {
	out := struct {
		ID      string       `json:"id"`
		Model   string       `json:"model"`
		Results []moderation `json:"results"`
	}{ID: "modr-" + a.id, Model: a.Model}
	for _, q := range a.sequences {
		m := moderation{Categories: map[string]bool{}, Scores: map[string]float64{}}
		for i, c := range moderationCategories {
			score := math.Pow(q.unit(i), 8) // mostly near 0
			m.Scores[c], m.Categories[c] = score, score > 0.5
			m.Flagged = m.Flagged || score > 0.5
		}
		out.Results = append(out.Results, m)
	}
	return mustJSON(out)
}

// rerankReply is /v1/rerank.
type rerankReply struct{}

type ranked struct {
	Index    int             `json:"index"`
	Document json.RawMessage `json:"document"`
	Score    float64         `json:"relevance_score"`
}

func (rerankReply) whole(a *answer) []byte {
	var documents []json.RawMessage
	if json.Unmarshal(a.Documents, &documents) != nil || len(documents) != len(a.sequences) {
		documents = []json.RawMessage{a.Documents}
	}
	var results []ranked
	for i, q := range a.sequences {
		document := documents[i]
		if firstByte(document) == '"' {
			document = slices.Concat([]byte(`{"text":`), bytes.TrimSpace(document), []byte(`}`))
		}
		results = append(results, ranked{i, document, q.unit(0)})
	}
	slices.SortStableFunc(results, func(a, b ranked) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	if a.TopN > 0 {
		results = results[:min(a.TopN, len(results))]
	}
	return mustJSON(struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Usage   any    `json:"usage"`
		Results any    `json:"results"`
	}{"rerank-" + a.id, a.Model, map[string]int{"total_tokens": a.promptTokens()}, results})
}

// scoreReply is /v1/score.
type scoreReply struct{}

type score struct {
	Index  int     `json:"index"`
	Object string  `json:"object"`
	Score  float64 `json:"score"`
}

func (scoreReply) whole(a *answer) []byte {
	var scores []score
	for i, q := range a.sequences {
		scores = append(scores, score{i, "score", q.unit(0)})
	}
	return mustJSON(struct {
		ID      string      `json:"id"`
		Object  string      `json:"object"`
		Created int64       `json:"created"`
		Model   string      `json:"model"`
		Data    []score     `json:"data"`
		Usage   pooledUsage `json:"usage"`
	}{"score-" + a.id, "list", a.created.Unix(), a.Model, scores, a.pooledUsage()})
}
