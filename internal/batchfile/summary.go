package batchfile

// Summary is the result of a scan, small enough to be stored with the file's metadata.
type Summary struct {
	Lines int   `json:"lines"` // requests, faulty ones included; without blank rows
	Bytes int64 `json:"bytes"`

	// Faults holds faults of the file first, then those of its lines in order, up to
	// Limits.MaxFaults.
	Faults     []Fault `json:"faults,omitempty"`
	FaultCount int     `json:"fault_count"` // including those not kept

	// Models and URLs count the lines without a fault, in order of first appearance. Line.Model and
	// Line.URL index them.
	Models []ModelSummary `json:"models,omitempty"`
	URLs   []URLSummary   `json:"urls,omitempty"`

	// EmbeddingInputs is the number of texts in the lines for /v1/embeddings.
	EmbeddingInputs int64 `json:"embedding_inputs,omitempty"`
}

// ModelSummary sums the lines of one model.
type ModelSummary struct {
	// Name is empty for lines without a model (moderations).
	Name        string `json:"name"`
	Lines       int    `json:"lines"`
	PromptBytes int64  `json:"prompt_bytes"`
	MaxTokens   int64  `json:"max_tokens"`   // sum over the lines that have a maximum
	CappedLines int    `json:"capped_lines"` // number of lines that have a maximum
}

// URLSummary counts the lines of one URL.
type URLSummary struct {
	URL       string `json:"url"`
	Lines     int    `json:"lines"`
	FirstLine int    `json:"first_line"` // row of the file, from 1
}
