package scheduler

// LineKey holds the properties of a line by which lines of a batch are ordered.
type LineKey struct {
	Model  uint16 // index into the batch's models
	Prefix uint64 // hash of the beginning of the prompt; equal ones share the prefix cache
}

// GroupBy sets which lines of a batch stay together.
type GroupBy string

// Lines of different models are always separate, because their chunks are claimed separately.
const (
	GroupNone  GroupBy = "none"  // input order inside a model
	GroupModel GroupBy = "model" // the same, by its own name
	// lines with the same prompt prefix together, so that the engine's prefix cache is used
	GroupPrefix GroupBy = "prefix"
)

// OrderLines returns the indexes of lines in the order in which they start: first the canary lines,
// which are the first lines of the input, then the others. In both parts the lines of each model
// are contiguous, models in the order of their first line. Canary lines of a model are in input
// order. Its other lines are in groups in the order of their first line, and in input order in a
// group.
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

// place writes the indexes of lines, counted from first, into order. It is a counting sort by
// group, with the groups sorted by model.
func place(order []uint32, lines []LineKey, first int, models map[uint16]int, group GroupBy) {
	type run struct{ model, size, start int }
	var runs []run                               // in order of first appearance
	byKey := make(map[LineKey]int, len(lines)/2) // often nearly every line has another prefix
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
