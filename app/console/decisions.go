package console

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/dispatch/decision"
)

// The number of decisions in an answer.
const (
	defaultDecisions = 100
	maxDecisions     = 1000
)

func (c *Console) decisions(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r.URL)
	if err != nil {
		return err
	}
	name := r.PathValue("pool")
	found, known := c.deps.Decisions.Decisions(name, q)
	if !known {
		// The leader has the others; a page shows this one as its last.
		if last := c.findPeerPool(r.Context(), name); last != nil {
			return writeJSON(w, http.StatusOK, peerDecisions{"list", name, false,
				[]json.RawMessage{last}})
		}
		return unknownPool(name, c.poolNames(r.Context()), c.deps.Problems())
	}
	return writeDecisions(w, name, found)
}

// peerDecisions are those of a pool that another process leads: its last one.
type peerDecisions struct {
	Object  string            `json:"object"`
	Pool    string            `json:"pool"`
	HasMore bool              `json:"has_more"`
	Data    []json.RawMessage `json:"data"`
}

// writeDecisions writes decisions one by one, since all of them together take much more memory than
// what holds them.
func writeDecisions(w http.ResponseWriter, pool string, found decision.Selection) error {
	name, err := json.Marshal(pool)
	if err != nil {
		return fmt.Errorf("encode the name of a pool: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"list","pool":%s,"has_more":%t,"data":[`, name, found.More)
	separator := ""
	for d := range found.All() {
		one, err := json.Marshal(d)
		if err != nil {
			panic(http.ErrAbortHandler) // the answer has begun
		}
		if _, err := fmt.Fprintf(w, "%s\n%s", separator, one); err != nil {
			return nil // the client is gone
		}
		separator = ","
	}
	fmt.Fprint(w, "]}\n")
	return nil
}

func readValues(u *url.URL) (url.Values, error) {
	v, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, &httpError{Status: http.StatusBadRequest, Type: "invalid_request_error",
			Code: "invalid_value", Message: fmt.Sprintf("The query can't be read: %v.", err)}
	}
	return v, nil
}

// readQuery reads the parameters of a request for decisions. Unknown ones are ignored.
func readQuery(u *url.URL) (q decision.Query, err error) {
	v, err := readValues(u)
	if err != nil {
		return q, err
	}
	if q.Since, err = readTime(v, "since"); err != nil {
		return q, err
	}
	if q.Until, err = readTime(v, "until"); err != nil {
		return q, err
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && q.Until.Before(q.Since) {
		return q, invalid("until", "it is before 'since'.")
	}
	if q.Limit, err = readLimit(v, defaultDecisions, maxDecisions); err != nil {
		return q, err
	}
	if text := v.Get("step"); text != "" {
		if q.Step, err = time.ParseDuration(text); err != nil || q.Step <= 0 {
			return q, invalid("step", "%s is not a duration above 0, such as 10s.", quoted(text))
		}
	}
	if q.Terms, err = readSwitch(v, "terms"); err != nil {
		return q, err
	}
	q.Inputs, err = readSwitch(v, "inputs")
	return q, err
}

// readSwitch reads a parameter that is true if absent.
func readSwitch(v url.Values, param string) (bool, error) {
	text := v.Get(param)
	if text == "" {
		return true, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid(param, "%s is neither true nor false.", quoted(text))
	}
	return on, nil
}

func readLimit(v url.Values, absent, most int) (int, error) {
	text := v.Get("limit")
	if text == "" {
		return absent, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, invalid("limit", "expected an integer from 1 to %d, got %s.", most, quoted(text))
	}
	return limit, nil
}

// latest is a time in seconds that every clock can show.
const latest = 1 << 33

// readTime reads a time in Unix seconds, which may have a fraction, or RFC 3339; the zero time if
// absent.
func readTime(v url.Values, param string) (time.Time, error) {
	text := v.Get(param)
	if text == "" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 &&
		seconds <= latest {
		return time.UnixMilli(int64(math.Round(1000 * seconds))), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, invalid(param, "%s is neither Unix seconds nor an RFC 3339 time.",
		quoted(text))
}
