package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// The sizes of a page of batches, as OpenAI's.
const (
	defaultBatchPage = 20
	maxBatchPage     = 100
)

// readBatchQuery reads the parameters of a listing. It ignores unknown parameters, as OpenAI does,
// and empty values, which clients send for parameters that are not set.
func readBatchQuery(v url.Values) (q store.BatchQuery, err error) {
	q.After = v.Get("after")
	q.Model = v.Get("model")
	if q.Limit, err = readLimit(v, defaultBatchPage, maxBatchPage); err != nil {
		return q, err
	}
	if q.Ascending, err = readOrder(v); err != nil {
		return q, err
	}
	switch sort := v.Get("sort"); store.BatchOrder(sort) {
	case "", store.ByCreation:
		q.Order = store.ByCreation
	case store.ByDeadline:
		q.Order = store.ByDeadline
	default:
		return q, invalid("sort", "invalid_value",
			"Invalid 'sort': %s is neither 'created_at' nor 'deadline'.", quoted(sort))
	}
	if q.States, err = readStates(v); err != nil {
		return q, err
	}
	if q.MetadataKey, q.MetadataValue, err = readMetadataFilter(v); err != nil {
		return q, err
	}
	for param, at := range map[string]*time.Time{
		"created_after":   &q.CreatedAfter,
		"created_before":  &q.CreatedBefore,
		"deadline_after":  &q.DeadlineAfter,
		"deadline_before": &q.DeadlineBefore,
	} {
		if *at, err = readTime(v, param); err != nil {
			return q, err
		}
	}
	return q, nil
}

// readLimit reads the size of a page; absent is the default.
func readLimit(v url.Values, absent, most int) (int, error) {
	text := v.Get("limit")
	if text == "" {
		return absent, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, invalid("limit", "invalid_value",
			"Invalid 'limit': expected an integer from 1 to %d, got %s.", most, quoted(text))
	}
	return limit, nil
}

func readOrder(v url.Values) (ascending bool, err error) {
	switch order := v.Get("order"); order {
	case "", "desc":
		return false, nil
	case "asc":
		return true, nil
	default:
		return false, invalid("order", "invalid_value",
			"Invalid 'order': %s is neither 'asc' nor 'desc'.", quoted(order))
	}
}

var states = []store.State{
	store.Validating, store.InProgress, store.Finalizing, store.Completed,
	store.Failed, store.Expired, store.Cancelling, store.Cancelled,
}

func stateList() string {
	var names []string
	for _, state := range states {
		names = append(names, "'"+string(state)+"'")
	}
	return strings.Join(names, ", ")
}

// readStates reads the filter by status: the parameters status and state, each of which may be a
// list.
func readStates(v url.Values) ([]store.State, error) {
	var wanted []store.State
	for _, param := range []string{"status", "state"} {
		for _, list := range v[param] {
			for name := range strings.SplitSeq(list, ",") {
				if name = strings.TrimSpace(name); name == "" {
					continue
				}
				state := store.State(name)
				if !slices.Contains(states, state) {
					return nil, invalid(param, "invalid_value",
						"Invalid '%s': %s is not a status of a batch; use %s.", param,
						quoted(name), stateList())
				}
				if !slices.Contains(wanted, state) {
					wanted = append(wanted, state)
				}
			}
		}
	}
	return wanted, nil
}

// readMetadataFilter reads metadata[key]=value. Without a value, any value of the key matches.
func readMetadataFilter(v url.Values) (key, value string, err error) {
	for param, values := range v {
		name, ok := strings.CutPrefix(param, "metadata[")
		if !ok {
			continue
		}
		name, ok = strings.CutSuffix(name, "]")
		if !ok || name == "" {
			return "", "", invalid(param, "invalid_value",
				"Invalid '%s': write metadata[key]=value.", shortened(param))
		}
		if key != "" || len(values) > 1 {
			return "", "", invalid("metadata", "invalid_value",
				"Only one key of metadata can be filtered by.")
		}
		key, value = name, values[0]
	}
	return key, value, nil
}

// readTime reads a time in Unix seconds or RFC 3339; the zero time if absent.
func readTime(v url.Values, param string) (time.Time, error) {
	text := v.Get(param)
	if text == "" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds >= 0 &&
		seconds <= latestInstant {
		return time.Unix(seconds, 0).UTC(), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	return time.Time{}, invalid(param, "invalid_value",
		"Invalid '%s': %s is neither Unix seconds nor an RFC 3339 time.",
		param, quoted(text))
}
