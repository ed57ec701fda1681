package batchfile

// Summary is what a scan learned about a file, small enough to be stored with the file's metadata.
type Summary struct {
	Lines int   `json:"lines"` // request lines, faulty ones too; blank lines don't count
	Bytes int64 `json:"bytes"`

	// Faults holds faults of the whole file first, then those of its lines in order, up to
	// Limits.MaxFaults.
	Faults     []Fault `json:"faults,omitempty"`
	FaultCount int     `json:"fault_count"` // all of them

	// Models and URLs count the lines without a fault, in order of first appearance. Line.Model and
	// Line.URL index them.
	Models []ModelSummary `json:"models,omitempty"`
	URLs   []URLSummary   `json:"urls,omitempty"`

	// EmbeddingInputs is the number of texts that the lines for /v1/embeddings ask vectors for.
	EmbeddingInputs int64 `json:"embedding_inputs,omitempty"`
}

// ModelSummary sums the lines for one model.
type ModelSummary struct {
	// empty: the line left the choice to the endpoint (moderations)
	Name        string `json:"name"`
	Lines       int    `json:"lines"`
	PromptBytes int64  `json:"prompt_bytes"`
	MaxTokens   int64  `json:"max_tokens"`   // the sum over the lines that give a maximum
	CappedLines int    `json:"capped_lines"` // how many lines do
}

// URLSummary counts the lines for one URL.
type URLSummary struct {
	URL       string `json:"url"`
	Lines     int    `json:"lines"`
	FirstLine int    `json:"first_line"` // physical, from 1
}
