package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// maxUsageNames limits the tenants, and the models, that a query selects.
	maxUsageNames = 100
	// maxUsageResults is the number of results after which a page ends.
	maxUsageResults = 10_000
	// bucketsAtOnce is the number of buckets of a page that are in memory at once.
	bucketsAtOnce = 8
)

type usageBucket struct {
	Object    string        `json:"object"`
	StartTime int64         `json:"start_time"`
	EndTime   int64         `json:"end_time"`
	Results   []usageResult `json:"results"`
}

// usageResult is what a group has used. Names that it is not grouped by are null.
type usageResult struct {
	Object            string       `json:"object"`
	InputTokens       int64        `json:"input_tokens"`
	OutputTokens      int64        `json:"output_tokens"`
	InputCachedTokens int64        `json:"input_cached_tokens"`
	InputAudioTokens  int64        `json:"input_audio_tokens"`  // 0
	OutputAudioTokens int64        `json:"output_audio_tokens"` // 0
	NumModelRequests  int64        `json:"num_model_requests"`
	ProjectID         *string      `json:"project_id"` // the tenant
	UserID            *string      `json:"user_id"`    // null
	APIKeyID          *string      `json:"api_key_id"` // null
	Model             *string      `json:"model"`
	Batch             *bool        `json:"batch"`
	ServiceTier       *string      `json:"service_tier"` // null
	Tidefill          usageDetails `json:"tidefill"`
}

type usageDetails struct {
	FailedRequests  int64   `json:"failed_requests"` // part of num_model_requests
	ReasoningTokens int64   `json:"reasoning_tokens"`
	Class           *string `json:"class"`
}

// usageQuery asks for a page of buckets. Its From and Until are those of all that is left.
type usageQuery struct {
	store.UsageQuery
	start   time.Time // of the first page, as it was asked for
	batch   *bool     // nil: requests of batches and others
	byBatch bool
	byClass bool
	limit   int // of buckets
}

// listUsage answers GET /v1/organization/usage/completions.
func (s *Server) listUsage(w http.ResponseWriter, r *http.Request) error {
	q, err := readUsageQuery(r.URL.Query(), s.now())
	if err != nil {
		return err
	}
	visible := s.showsUsage(r, &q)
	page := newPageWriter[usageBucket](w, "page")
	at, results := q.From, 0
	for at.Before(q.Until) && page.sent < q.limit && results < maxUsageResults {
		end := q.endOf(at, min(bucketsAtOnce, q.limit-page.sent))
		var used []store.Used
		if visible {
			if used, err = s.readUsage(r.Context(), q, at, end); err != nil {
				return err
			}
		}
		for at.Before(end) {
			next, n := q.endOf(at, 1), 0
			for n < len(used) && used[n].Hour.Before(next) {
				n++
			}
			bucket := usageBucket{Object: "bucket", StartTime: at.Unix(), EndTime: next.Unix(),
				Results: q.group(used[:n])}
			if err := page.send(bucket); err != nil {
				return fmt.Errorf("list usage: %w", err)
			}
			results += len(bucket.Results)
			used, at = used[n:], next
		}
	}
	var rest struct {
		HasMore  bool    `json:"has_more"`
		NextPage *string `json:"next_page"`
	}
	if rest.HasMore = at.Before(q.Until); rest.HasMore {
		rest.NextPage = orNull(q.cursor(at))
	}
	return page.end(rest)
}

// showsUsage restricts a query to what the sender may see: an admin the usage of all tenants,
// others that of the tenant for which the request acts. It returns false if that is nothing.
func (s *Server) showsUsage(r *http.Request, q *usageQuery) bool {
	if s.isAdmin(r.Context()) && len(r.Header.Values(TenantHeader)) == 0 {
		return true
	}
	own := tenantOf(r.Context())
	if len(q.Tenants) > 0 && !slices.Contains(q.Tenants, own) {
		return false
	}
	q.Tenants = []string{own}
	return true
}

// readUsage reads the sums of the buckets from at to end.
func (s *Server) readUsage(
	ctx context.Context, q usageQuery, at, end time.Time,
) ([]store.Used, error) {
	q.From, q.Until = at, end
	used, err := s.deps.Ledger.Usage(ctx, q.UsageQuery)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return used, nil
}

// endOf returns the end of the n-th bucket that begins at a time or, within a bucket, after it.
func (q *usageQuery) endOf(at time.Time, n int) time.Time {
	end := at.Truncate(q.Width).Add(time.Duration(n) * q.Width)
	if end.After(q.Until) {
		return q.Until
	}
	return end
}

// group returns the groups of a bucket in the order of used.
func (q *usageQuery) group(used []store.Used) []usageResult {
	type key struct {
		tenant, model, class string
		batch                bool
	}
	at := make(map[key]int, len(used))
	var sums []store.Used
	for _, u := range used {
		batch := u.Class == store.BatchClass
		if q.batch != nil && *q.batch != batch {
			continue
		}
		k := key{tenant: u.Tenant, model: u.Model, batch: q.byBatch && batch}
		if q.byClass {
			k.class = u.Class
		}
		i, known := at[k]
		if !known {
			at[k] = len(sums)
			sums = append(sums, u)
			continue
		}
		sums[i].Requests += u.Requests
		sums[i].Failed += u.Failed
		sums[i].Tokens.Add(u.Tokens)
	}
	results := make([]usageResult, len(sums))
	for i := range sums {
		results[i] = q.show(&sums[i])
	}
	return results
}

func (q *usageQuery) show(u *store.Used) usageResult {
	r := usageResult{
		Object: "organization.usage.completions.result", InputTokens: u.Tokens.InputTokens,
		OutputTokens: u.Tokens.OutputTokens, InputCachedTokens: u.Tokens.CachedTokens,
		NumModelRequests: u.Requests,
		Tidefill: usageDetails{FailedRequests: u.Failed,
			ReasoningTokens: u.Tokens.ReasoningTokens},
	}
	if q.ByTenant {
		r.ProjectID = &u.Tenant
	}
	if q.ByModel {
		r.Model = &u.Model
	}
	if q.byBatch {
		batch := u.Class == store.BatchClass
		r.Batch = &batch
	}
	if q.byClass {
		r.Tidefill.Class = &u.Class
	}
	return r
}

// readUsageQuery reads the parameters of a query at a time. Hours that are not over are part of it,
// and those to come and those that the ledger no longer has are not.
func readUsageQuery(v url.Values, now time.Time) (q usageQuery, err error) {
	for _, param := range []string{"user_ids", "api_key_ids"} {
		if len(listed(v, param)) > 0 {
			return q, invalid(param, "invalid_value", "Invalid '%s': usage is counted by tenant "+
				"and model; use 'project_ids' and 'models'.", param)
		}
	}
	for param, into := range map[string]*[]string{"project_ids": &q.Tenants, "models": &q.Models} {
		if *into = listed(v, param); len(*into) > maxUsageNames {
			return q, invalid(param, "invalid_value", "Invalid '%s': it has %d values; the limit "+
				"is %d.", param, len(*into), maxUsageNames)
		}
	}
	if err := q.readGroups(listed(v, "group_by")); err != nil {
		return q, err
	}
	switch batch := v.Get("batch"); batch {
	case "":
	case "true", "false":
		is := batch == "true"
		q.batch, q.ByClass = &is, true
	default:
		return q, invalid("batch", "invalid_value",
			"Invalid 'batch': %s is neither 'true' nor 'false'.", quoted(batch))
	}
	if err := q.readWidth(v); err != nil {
		return q, err
	}
	return q, q.readTimes(v, now.UTC())
}

// listed returns the values of a parameter that may occur several times. Its name may end in [], as
// SDKs send it.
func listed(v url.Values, param string) (values []string) {
	for _, value := range slices.Concat(v[param], v[param+"[]"]) {
		if value != "" {
			values = append(values, value)
		}
	}
	return values
}

func (q *usageQuery) readGroups(groups []string) error {
	for _, group := range strings.Split(strings.Join(groups, ","), ",") {
		switch group {
		case "":
		case "project_id":
			q.ByTenant = true
		case "model":
			q.ByModel = true
		case "batch":
			q.byBatch, q.ByClass = true, true
		case "class":
			q.byClass, q.ByClass = true, true
		default:
			return invalid("group_by", "invalid_value", "Invalid 'group_by': usage is not counted "+
				"by %s; use 'project_id', 'model', 'batch' or 'class'.", quoted(group))
		}
	}
	return nil
}

// readWidth reads the width of buckets and the size of a page, whose limits are OpenAI's.
func (q *usageQuery) readWidth(v url.Values) (err error) {
	absent, most := 7, 31
	switch width := v.Get("bucket_width"); width {
	case "", "1d":
		q.Width = 24 * time.Hour
	case "1h":
		q.Width = time.Hour
		absent, most = 24, 168
	case "1m":
		return invalid("bucket_width", "invalid_value",
			"Invalid 'bucket_width': usage is counted by the hour; use '1h' or '1d'.")
	default:
		return invalid("bucket_width", "invalid_value",
			"Invalid 'bucket_width': %s is neither '1h' nor '1d'.", quoted(width))
	}
	q.limit, err = readLimit(v, absent, most)
	return err
}

func (q *usageQuery) readTimes(v url.Values, now time.Time) (err error) {
	if q.start, err = readTime(v, "start_time"); err != nil {
		return err
	}
	if v.Get("start_time") == "" {
		return missing("start_time")
	}
	end, err := readTime(v, "end_time")
	if err != nil {
		return err
	}
	if v.Get("end_time") != "" && !end.After(q.start) {
		return invalid("end_time", "invalid_value",
			"Invalid 'end_time': %s is not after 'start_time'.", quoted(v.Get("end_time")))
	}
	thisHour := now.Truncate(time.Hour)
	q.From = later(q.start.Truncate(time.Hour), thisHour.Add(-store.UsageRetention))
	q.Until = thisHour.Add(time.Hour)
	if last := end.Add(time.Hour - 1).Truncate(time.Hour); !end.IsZero() && last.Before(q.Until) {
		q.Until = last
	}
	if page := v.Get("page"); page != "" {
		at, ok := q.readCursor(page)
		if !ok {
			return invalid("page", "invalid_value", "Invalid 'page': %s is not the 'next_page' of "+
				"a query with this 'start_time' and 'bucket_width'.", quoted(page))
		}
		q.From = later(q.From, at)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// cursor returns the text of a page that begins at a time: a checksum of the first page, and the
// number of the hour since 1970.
func (q *usageQuery) cursor(at time.Time) string {
	packed := binary.BigEndian.AppendUint32(nil, q.checksum())
	packed = binary.AppendUvarint(packed, uint64(at.Unix()/3600))
	return base64.RawURLEncoding.EncodeToString(packed)
}

func (q *usageQuery) checksum() uint32 {
	return crc32.ChecksumIEEE(fmt.Appendf(nil, "usage %d %d", q.start.Unix(), q.Width))
}

// readCursor returns the beginning of a page; false: the text is no cursor of this query.
func (q *usageQuery) readCursor(text string) (at time.Time, ok bool) {
	packed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(packed) < 4 {
		return at, false
	}
	hour, _ := binary.Uvarint(packed[4:])
	if hour > latestInstant/3600 {
		return at, false
	}
	at = time.Unix(int64(hour)*3600, 0).UTC()
	return at, at.After(q.start) && at.Equal(at.Truncate(q.Width)) && q.cursor(at) == text
}
