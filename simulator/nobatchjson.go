package simulator

import "encoding/json"

// noBatchJSON is the JSON form of NoBatch. It is complete but for the timeline, so a run can be
// compared with a stored one.
type noBatchJSON struct {
	Interactive Interactive `json:"interactive"`
	GPUHours    float64     `json:"gpu_hours"`
	Paid        []float64   `json:"paid"`
	// Minutes holds the judged and the attained requests of each minute.
	Minutes [][2]int `json:"minutes"`
	// Alone is as in NoBatch.
	Alone *Interactive `json:"alone,omitempty"`
}

// MarshalJSON writes the run, for UnmarshalJSON.
func (q NoBatch) MarshalJSON() ([]byte, error) {
	return json.Marshal(noBatchJSON{Interactive: q.Interactive, GPUHours: q.GPUHours,
		Paid: q.Paid, Minutes: minutesJSON(q.minutes),
		Alone: q.Alone})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (q *NoBatch) UnmarshalJSON(content []byte) error {
	var form noBatchJSON
	if err := json.Unmarshal(content, &form); err != nil {
		return err
	}
	*q = NoBatch{Interactive: form.Interactive, GPUHours: form.GPUHours, Paid: form.Paid,
		Alone: form.Alone, minutes: minutesOf(form.Minutes)}
	return nil
}
