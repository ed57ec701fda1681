package plan

import "testing"

func TestReasonsAsTexts(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Paused.Text(), "paused: Somebody paused the batch. Resume it: tidefill batch resume."},
		{Reason("shed").Text(), "shed: The runner refused lines for load (429 or 503). Wait."},
		{Reason("of-a-policy").Text(), "of-a-policy"},
		{Queued.Because("Behind batch_1, about 2 min."), "queued: Behind batch_1, about 2 min. " +
			"Wait, or set an earlier deadline or a higher priority."},
		{Reason("of-a-policy").Because("It waits."), "of-a-policy: It waits."},
		{string(ReasonOf(Paused.Text())), "paused"},
		{string(ReasonOf("of-a-policy")), "of-a-policy"},
	} {
		if test.got != test.want {
			t.Errorf("got  %s\nwant %s", test.got, test.want)
		}
	}
	for _, e := range Explanations() {
		if ReasonOf(e.Reason.Text()) != e.Reason {
			t.Errorf("%q does not begin with its reason", e.Reason.Text())
		}
	}
}
