package simulator

import "encoding/json"

// KeptRun is a Result before Compare whose JSON form is complete, so that it can be compared later.
// It has no timeline.
type KeptRun struct{ Result }

// keptRunJSON is the JSON form of KeptRun.
type keptRunJSON struct {
	Result Result `json:"result"`
	// Minutes holds the judged and the attained requests of each minute.
	Minutes [][2]int `json:"minutes"`
}

// MarshalJSON writes the run, for UnmarshalJSON.
func (k KeptRun) MarshalJSON() ([]byte, error) {
	form := keptRunJSON{Result: k.Result, Minutes: minutesJSON(k.minutes)}
	form.Result.Timeline = nil
	return json.Marshal(form)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (k *KeptRun) UnmarshalJSON(content []byte) error {
	var form keptRunJSON
	if err := json.Unmarshal(content, &form); err != nil {
		return err
	}
	k.Result = form.Result
	k.minutes = minutesOf(form.Minutes)
	return nil
}

func minutesJSON(minutes []minute) (form [][2]int) {
	for _, m := range minutes {
		form = append(form, [2]int{m.judged, m.attained})
	}
	return form
}

func minutesOf(form [][2]int) (minutes []minute) {
	for _, m := range form {
		minutes = append(minutes, minute{judged: m[0], attained: m[1]})
	}
	return minutes
}
