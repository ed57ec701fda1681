package simulator

import "encoding/json"

// noBatchJSON is the JSON form of NoBatch. It is complete, so a run can be compared with a stored
// one.
type noBatchJSON struct {
	Interactive Interactive `json:"interactive"`
	GPUHours    float64     `json:"gpu_hours"`
	Paid        []float64   `json:"paid"`
	// Minutes holds the judged and the attained requests of each minute.
	Minutes [][2]int `json:"minutes"`
}

// MarshalJSON writes the run, for UnmarshalJSON.
func (q NoBatch) MarshalJSON() ([]byte, error) {
	form := noBatchJSON{Interactive: q.Interactive, GPUHours: q.GPUHours, Paid: q.Paid}
	for _, m := range q.minutes {
		form.Minutes = append(form.Minutes, [2]int{m.judged, m.attained})
	}
	return json.Marshal(form)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (q *NoBatch) UnmarshalJSON(content []byte) error {
	var form noBatchJSON
	if err := json.Unmarshal(content, &form); err != nil {
		return err
	}
	*q = NoBatch{Interactive: form.Interactive, GPUHours: form.GPUHours, Paid: form.Paid}
	for _, m := range form.Minutes {
		q.minutes = append(q.minutes, minute{judged: m[0], attained: m[1]})
	}
	return nil
}
