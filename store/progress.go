package store

import (
	"context"
	"slices"
	"time"
)

// Progress describes a running batch for its users. Nothing is decided by it: the records in the
// journals are the truth about results, and progress lags behind them.
type Progress struct {
	Completed, Failed int // lines with a durable result
	InFlight          int
	Retrying          int   // lines that wait for another attempt
	Attempts          int64 // requests sent, first ones included
	LinesPerSecond    float64
	Waiting           string // why no more lines are started now; empty: lines are started
	// Unranked is why the ordering policy can't rank the batch, which goes last; empty: it can
	Unranked string `json:",omitempty"`
	// Forecast is that of the models of the batch that the dispatcher leads.
	Forecast Forecast `json:",omitzero"`
	// Failures are the most frequent causes of failed lines that the dispatcher has seen.
	Failures  [ShownFailures]Failure `json:",omitzero"`
	Leads     bool                   // a model of the batch, so its Waiting counts
	UpdatedAt time.Time
}

// Add joins the progress that two dispatchers posted for one batch.
func (p Progress) Add(q Progress) Progress {
	p.Completed += q.Completed
	p.Failed += q.Failed
	p.InFlight += q.InFlight
	p.Retrying += q.Retrying
	p.Attempts += q.Attempts
	p.LinesPerSecond += q.LinesPerSecond
	p.Forecast = p.Forecast.Join(q.Forecast)
	p.Failures = joinFailures(p.Failures, q.Failures)
	newer := q.UpdatedAt.After(p.UpdatedAt)
	if q.Leads && !p.Leads || newer && q.Leads == p.Leads {
		p.Waiting, p.Unranked, p.Leads = q.Waiting, q.Unranked, q.Leads
	}
	if newer {
		p.UpdatedAt = q.UpdatedAt
	}
	return p
}

// ProgressPost is the progress of a batch as one dispatcher posts it. Its Completed and Failed are
// the sums over Chunks.
type ProgressPost struct {
	// Owner is set by ProgressPosts.
	Owner Owner `json:"-"`
	Progress
	// Chunks counts the results in the chunks that the dispatcher has claimed, or has given back
	// unfinished. A chunk that was finished since is left out when progress is read.
	Chunks []ChunkProgress `json:",omitempty"`
}

// ChunkProgress counts the durable results of a chunk, as its journal reported them to the claimant
// of the epoch.
type ChunkProgress struct {
	Index             int
	Epoch             int64
	Completed, Failed int
}

// ProgressBoard is where dispatchers post progress and the API reads it. It may lose what it holds:
// dispatchers post again when something changes, and a new claimant counts its journal first.
type ProgressBoard interface {
	// PostProgress replaces what this owner's node posted about each of these batches, in one
	// round trip, but not what a newer incarnation of the node posted. Posts about deleted batches
	// may be dropped. ErrFenced: the owner is superseded, as far as the board knows. ErrNoSpace:
	// nothing is kept, but the posts are returned to this process all the same, since users ask why
	// nothing moves while a disk is full.
	PostProgress(ctx context.Context, o Owner, posts map[string]ProgressPost) error
	// ProgressPosts returns, for each of these batches, the last post of each node, ordered by
	// node. Posts of owners whose lease has ended may be among them. Batches without a post are
	// absent. A post may be missing, or be older than the last one by seconds.
	ProgressPosts(ctx context.Context, batches []string) (map[string][]ProgressPost, error)
}

// ReadProgress returns the progress of each of these batches: the tallies of its done chunks, and
// what dispatchers whose lease lasts posted about the others. Batches without either are absent.
// The two are read one after the other, from systems that need not agree: a chunk counts by its
// tally if it is done, and else by the post of its newest claimant. Of a dispatcher that is silent,
// whose lease lasts although it has probably ended, only results and attempts count. silent may be
// nil.
func ReadProgress(
	ctx context.Context, board progressReader, claims claimReader, batches []string,
	silent func(node string) bool,
) (map[string]Progress, error) {
	posts, done, err := readPosts(ctx, board, claims, batches)
	if err != nil {
		return nil, err
	}
	progress := make(map[string]Progress, len(batches))
	for _, batch := range batches {
		sum, hasDone := done[batch]
		if !hasDone && len(posts[batch]) == 0 {
			continue
		}
		p := Progress{Completed: sum.Completed, Failed: sum.Failed}
		newest := newestClaims(posts[batch], sum.Done)
		for _, post := range posts[batch] {
			counted := post.counting(newest)
			if silent != nil && silent(post.Owner.Node) {
				counted = Progress{Completed: counted.Completed, Failed: counted.Failed,
					Attempts: counted.Attempts, UpdatedAt: counted.UpdatedAt}
			}
			p = p.Add(counted)
		}
		progress[batch] = p
	}
	return progress, nil
}

// OpenResults returns what dispatchers whose lease lasts posted about chunks of these batches that
// are not done, each by its newest claimant.
func OpenResults(
	ctx context.Context, board progressReader, claims claimReader, batches []string,
) (map[string][]ChunkProgress, error) {
	posts, done, err := readPosts(ctx, board, claims, batches)
	if err != nil {
		return nil, err
	}
	open := map[string][]ChunkProgress{}
	for batch, ofBatch := range posts {
		newest := newestClaims(ofBatch, done[batch].Done)
		for _, post := range ofBatch {
			for _, c := range post.Chunks {
				if epoch, is := newest[c.Index]; is && epoch == c.Epoch {
					open[batch] = append(open[batch], c)
					delete(newest, c.Index)
				}
			}
		}
	}
	return open, nil
}

// readPosts reads the live posts about the batches, and then which of their chunks are done. In
// this order: a chunk that leaves the posts is done by then, and counted.
func readPosts(
	ctx context.Context, board progressReader, claims claimReader, batches []string,
) (posts map[string][]ProgressPost, done map[string]DoneChunks, err error) {
	if posts, err = livePosts(ctx, board, claims, batches); err != nil {
		return nil, nil, err
	}
	posted := make(map[string][]int, len(batches))
	for _, batch := range batches {
		posted[batch] = nil
		for _, post := range posts[batch] {
			for _, c := range post.Chunks {
				posted[batch] = append(posted[batch], c.Index)
			}
		}
	}
	done, err = claims.SumDone(ctx, posted)
	return posts, done, err
}

// Outlook is what dispatchers expect of a batch, and why none of its lines start.
type Outlook struct {
	Forecast
	Waiting string // empty: lines start
}

// ReadOutlooks returns what dispatchers whose lease lasts posted about these batches. Batches of
// which nothing was posted are absent.
func ReadOutlooks(
	ctx context.Context, board progressReader, owners ownerReader, batches []string,
) (map[string]Outlook, error) {
	posts, err := livePosts(ctx, board, owners, batches)
	if err != nil {
		return nil, err
	}
	outlooks := map[string]Outlook{}
	for batch, ofBatch := range posts {
		var joined Progress
		for _, post := range ofBatch {
			joined = joined.Add(post.Progress)
		}
		if len(ofBatch) > 0 {
			outlooks[batch] = Outlook{joined.Forecast, joined.Waiting}
		}
	}
	return outlooks, nil
}

// progressReader is the part of ProgressBoard that the functions here need.
type progressReader interface {
	ProgressPosts(ctx context.Context, batches []string) (map[string][]ProgressPost, error)
}

// claimReader is the part of Owners and Tallies that the functions here need.
type claimReader interface {
	ownerReader
	SumDone(ctx context.Context, chunks map[string][]int) (map[string]DoneChunks, error)
}

// ownerReader is the part of Owners that reports whose lease lasts.
type ownerReader interface {
	LiveOwners(ctx context.Context, owners []Owner) ([]Owner, error)
}

// livePosts reads the posts of the owners whose lease lasts.
func livePosts(
	ctx context.Context, board progressReader, claims ownerReader, batches []string,
) (map[string][]ProgressPost, error) {
	posts, err := board.ProgressPosts(ctx, batches)
	if err != nil || len(posts) == 0 {
		return nil, err
	}
	var owners []Owner
	for _, ofBatch := range posts {
		for _, post := range ofBatch {
			if !slices.Contains(owners, post.Owner) {
				owners = append(owners, post.Owner)
			}
		}
	}
	live, err := claims.LiveOwners(ctx, owners)
	if err != nil {
		return nil, err
	}
	for batch, ofBatch := range posts {
		posts[batch] = slices.DeleteFunc(ofBatch, func(post ProgressPost) bool {
			return !slices.Contains(live, post.Owner)
		})
	}
	return posts, nil
}

// newestClaims returns the highest epoch of each chunk in the posts that is not done.
func newestClaims(posts []ProgressPost, done []int) map[int]int64 {
	newest := map[int]int64{}
	for _, post := range posts {
		for _, c := range post.Chunks {
			newest[c.Index] = max(newest[c.Index], c.Epoch)
		}
	}
	for _, index := range done {
		delete(newest, index)
	}
	return newest
}

// counting returns the progress of the post without the chunks that are done, or that another owner
// has claimed since.
func (p ProgressPost) counting(newest map[int]int64) Progress {
	progress := p.Progress
	for _, c := range p.Chunks {
		if epoch, open := newest[c.Index]; !open || epoch != c.Epoch {
			progress.Completed -= c.Completed
			progress.Failed -= c.Failed
		}
	}
	return progress
}
