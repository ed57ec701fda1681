package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidefill/tidefill/store"
)

const (
	// keepProgress is the time for which a post is kept that is not posted again.
	keepProgress = time.Minute
	// postAgainEvery is the interval at which dispatchers post what has not changed. It is the time
	// for which progress may be missing after Redis was flushed or has lost its memory.
	postAgainEvery = 5 * time.Second
)

// postScript replaces the post of a node unless a newer incarnation of it has posted. A value is
// "INCARNATION POST".
var postScript = redis.NewScript(`
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old and tonumber(string.match(old, '^%d+')) > tonumber(ARGV[2]) then
	return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
`)

// PostAgainEvery returns the interval at which posts are to be repeated.
func (db *DB) PostAgainEvery() time.Duration { return postAgainEvery }

// PostProgress implements [store.ProgressBoard]. While Redis is away it posts to the other board.
func (db *DB) PostProgress(
	ctx context.Context, o store.Owner, posts map[string]store.ProgressPost,
) error {
	if len(posts) == 0 {
		return nil
	}
	docs := make(map[string][]byte, len(posts))
	for batch, p := range posts {
		p.UpdatedAt = p.UpdatedAt.UTC().Truncate(time.Microsecond)
		doc, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("post progress of batch %s: %w", batch, err)
		}
		docs[batch] = doc
	}
	post := func(ctx context.Context, run func(redis.Scripter, context.Context, []string,
		...any) *redis.Cmd) (fenced bool, err error) {
		answers, err := db.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, batch := range slices.Sorted(maps.Keys(docs)) {
				run(pipe, ctx, []string{db.key("progress", batch)}, o.Node, o.Incarnation,
					docs[batch], keepProgress.Milliseconds())
			}
			return nil
		})
		for _, answer := range answers {
			n, failed := answer.(*redis.Cmd).Int()
			if failed == nil && n == 0 {
				fenced = true
			}
		}
		return fenced, err
	}
	var fenced bool
	err := db.call(ctx, func(ctx context.Context) (err error) {
		fenced, err = post(ctx, func(to redis.Scripter, ctx context.Context, keys []string,
			args ...any) *redis.Cmd {
			return postScript.EvalSha(ctx, to, keys, args...)
		})
		if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") { // it was restarted
			fenced, err = post(ctx, func(to redis.Scripter, ctx context.Context, keys []string,
				args ...any) *redis.Cmd {
				return postScript.Eval(ctx, to, keys, args...)
			})
		}
		return err
	})
	if errors.Is(err, store.ErrUnavailable) {
		return db.progress.PostProgress(ctx, o, posts)
	}
	if err == nil && fenced {
		err = store.ErrFenced
	}
	if err != nil {
		return fmt.Errorf("post progress of node %s: %w", o.Node, err)
	}
	return nil
}

// ProgressPosts implements [store.ProgressBoard]. While Redis is away it reads the other board.
func (db *DB) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	if len(batches) == 0 {
		return map[string][]store.ProgressPost{}, nil
	}
	var answers []redis.Cmder
	err := db.call(ctx, func(ctx context.Context) (err error) {
		answers, err = db.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, batch := range batches {
				pipe.HGetAll(ctx, db.key("progress", batch))
			}
			return nil
		})
		return err
	})
	if errors.Is(err, store.ErrUnavailable) {
		return db.progress.ProgressPosts(ctx, batches)
	}
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	all := map[string][]store.ProgressPost{}
	for i, answer := range answers {
		byNode := answer.(*redis.MapStringStringCmd).Val()
		var posts []store.ProgressPost
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			if post, ok := readPost(node, byNode[node]); ok {
				posts = append(posts, post)
			}
		}
		if len(posts) > 0 {
			all[batches[i]] = posts
		}
	}
	return all, nil
}

// readPost reads a value. ok is false for one of another version of this package.
func readPost(node, value string) (post store.ProgressPost, ok bool) {
	incarnation, doc, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(incarnation, 10, 64)
	if err != nil || json.Unmarshal([]byte(doc), &post) != nil {
		return post, false
	}
	post.Owner = store.Owner{Node: node, Incarnation: n}
	return post, true
}
