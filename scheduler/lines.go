package scheduler

// LineKey is what the order of lines inside a batch looks at.
type LineKey struct {
	Model  uint16 // index into the batch's models
	Prefix uint64 // hash of the prompt's beginning; equal ones share an engine's prefix cache
}

// GroupBy names what lines are kept together by.
type GroupBy string

// Whatever the grouping, lines of different models are kept apart, because they are claimed apart.
const (
	GroupNone  GroupBy = "none"  // input order inside a model
	GroupModel GroupBy = "model" // the same, by its own name
	// lines of one prompt prefix together, so that the engine's prefix cache stays warm
	GroupPrefix GroupBy = "prefix"
)

// OrderLines returns the indexes of lines in the order in which they are to be started: first the
// canaries, which are the first lines of the input, then the rest. Each of the two parts holds
// every model's lines as one contiguous run, models in order of first appearance in the input.
// Inside a model, canaries stand in input order, the rest in groups in order of first appearance
// and in input order inside a group.
func OrderLines(lines []LineKey, canary int, group GroupBy) []uint32 {
	canary = max(0, min(canary, len(lines)))
	order := make([]uint32, len(lines))
	models := map[uint16]int{}
	for _, line := range lines {
		if _, known := models[line.Model]; !known {
			models[line.Model] = len(models)
		}
	}
	place(order[:canary], lines[:canary], 0, models, GroupNone)
	place(order[canary:], lines[canary:], canary, models, group)
	return order
}

// place writes the indexes of lines, counted from first, into order: a counting sort by group,
// groups sorted by model.
func place(order []uint32, lines []LineKey, first int, models map[uint16]int, group GroupBy) {
	type run struct{ model, size, start int }
	var runs []run                               // in order of first appearance
	byKey := make(map[LineKey]int, len(lines)/2) // often nearly every line has a prefix of its own
	runOf := make([]int, len(lines))
	for i, line := range lines {
		if group != GroupPrefix {
			line.Prefix = 0
		}
		r, known := byKey[line]
		if !known {
			r = len(runs)
			byKey[line] = r
			runs = append(runs, run{model: models[line.Model]})
		}
		runs[r].size++
		runOf[i] = r
	}
	ofModel := make([][]int, len(models))
	for r := range runs {
		ofModel[runs[r].model] = append(ofModel[runs[r].model], r)
	}
	start := 0
	for _, rs := range ofModel {
		for _, r := range rs {
			runs[r].start = start
			start += runs[r].size
		}
	}
	for i, r := range runOf {
		order[runs[r].start] = uint32(first + i)
		runs[r].start++
	}
}
