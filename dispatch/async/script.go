package async

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxLost is the number of leases of an item that may end before it counts as lost. A request
	// that ends its engine and the worker beside it must not meet many of them.
	maxLost = 2
	// keep is the time for which keys are kept that nobody uses.
	keep = time.Minute
	// maxExpired limits the leases that one call ends, so that no call takes long.
	maxExpired = 1000
)

// state is where an item is.
type state int

const (
	absent state = iota
	queued
	leased
	unserved // it was queued, and has been dropped because the runner has no worker
)

// prelude begins each script. KEYS are those of keys.all; the first arguments are keep and the
// beginning of the keys of answers.
const prelude = `
local queue, items, leases, workers, offerers, bell =
	KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local keep, answers = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function forget(id)
	redis.call('ZREM', queue, id)
	redis.call('ZREM', leases, id)
	redis.call('HDEL', items, 'b:' .. id, 'd:' .. id, 't:' .. id, 'l:' .. id)
end
local function ring()
	if redis.call('LLEN', bell) == 0 then redis.call('RPUSH', bell, '1') end
	redis.call('PEXPIRE', bell, keep)
end
local function alive(set)
	redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
	return redis.call('ZCARD', set) > 0
end
local function offerer(id)
	local until_ = redis.call('ZSCORE', offerers, string.match(id, '^[^/]+'))
	return until_ and tonumber(until_) > now
end
local function enqueue(id)
	redis.call('ZREM', leases, id)
	redis.call('HDEL', items, 't:' .. id)
	redis.call('ZADD', queue, redis.call('HGET', items, 'd:' .. id) or 0, id)
	ring()
end
local function reply(id, body)
	forget(id)
	if not offerer(id) then return end
	local list = answers .. string.match(id, '^[^/]+')
	redis.call('RPUSH', list, id .. '\n' .. body)
	redis.call('PEXPIRE', list, keep)
end
local function expire()
	for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, MAXEXPIRED)) do
		if redis.call('HINCRBY', items, 'l:' .. id, 1) < MAXLOST and alive(workers) then
			enqueue(id)
		else
			reply(id, LOST)
		end
	end
end
local function touch()
	for i = 1, 5 do redis.call('PEXPIRE', KEYS[i], keep) end
end
`

// offerScript adds an item: offerer, its time to live, id, deadline, body. It returns 0 if the
// runner has no worker.
var offerScript = script(`
if not alive(workers) then return 0 end
redis.call('ZADD', offerers, now + ARGV[4], ARGV[3])
if redis.call('HEXISTS', items, 'b:' .. ARGV[5]) == 0 then
	redis.call('HSET', items, 'b:' .. ARGV[5], ARGV[7], 'd:' .. ARGV[5], ARGV[6])
	redis.call('ZADD', queue, ARGV[6], ARGV[5])
	ring()
end
touch()
return 1
`)

// withdrawScript removes an item: id. It returns the state that it had.
var withdrawScript = script(`
local was = 0
if redis.call('ZSCORE', queue, ARGV[3]) then was = 1 end
if redis.call('ZSCORE', leases, ARGV[3]) then was = 2 end
forget(ARGV[3])
return was
`)

// takeScript leases items by deadline: worker, its time to live, number, lease, token. It returns
// ids and bodies in turn.
var takeScript = script(`
redis.call('ZADD', workers, now + ARGV[4], ARGV[3])
expire()
local taken = {}
local most = tonumber(ARGV[5])
while #taken < 2 * most do
	local ids = redis.call('ZRANGE', queue, 0, most - #taken / 2 - 1)
	if #ids == 0 then break end
	for _, id in ipairs(ids) do
		local body = redis.call('HGET', items, 'b:' .. id)
		if body and offerer(id) then
			redis.call('ZREM', queue, id)
			redis.call('HSET', items, 't:' .. id, ARGV[7])
			redis.call('ZADD', leases, now + ARGV[6], id)
			taken[#taken + 1] = id
			taken[#taken + 1] = body
		else
			forget(id)
		end
	end
end
if redis.call('ZCARD', queue) > 0 then ring() end
touch()
return taken
`)

// renewScript extends leases: worker, its time to live, lease, and ids and tokens in turn. It
// returns the ids that the worker does not hold any more.
var renewScript = script(`
redis.call('ZADD', workers, now + ARGV[4], ARGV[3])
expire()
local gone = {}
for i = 6, #ARGV, 2 do
	local id = ARGV[i]
	local mine = redis.call('HGET', items, 't:' .. id) == ARGV[i + 1]
	if mine and offerer(id) then
		redis.call('ZADD', leases, now + ARGV[5], id)
	else
		if mine then forget(id) end
		gone[#gone + 1] = id
	end
end
touch()
return gone
`)

// answerScript returns the answer of an item: id, token, answer. It returns 0 if the token is not
// the current one.
var answerScript = script(`
if redis.call('HGET', items, 't:' .. ARGV[3]) ~= ARGV[4] then return 0 end
reply(ARGV[3], ARGV[5])
return 1
`)

// releaseScript puts an item back that was not begun: id, token. It returns 0 if the token is not
// the current one.
var releaseScript = script(`
if redis.call('HGET', items, 't:' .. ARGV[3]) ~= ARGV[4] then return 0 end
enqueue(ARGV[3])
return 1
`)

// leaveScript removes a worker: worker.
var leaveScript = script(`return redis.call('ZREM', workers, ARGV[3])`)

// checkScript is a sign of life of an offerer: offerer, its time to live, and ids. It returns the
// state of each item.
var checkScript = script(`
redis.call('ZADD', offerers, now + ARGV[4], ARGV[3])
redis.call('ZREMRANGEBYSCORE', offerers, '-inf', now)
expire()
local served = alive(workers)
local states = {}
for i = 5, #ARGV do
	local id, at = ARGV[i], 0
	if redis.call('ZSCORE', leases, id) then
		at = 2
	elseif redis.call('ZSCORE', queue, id) then
		at = 1
		if not served then
			forget(id)
			at = 3
		end
	end
	states[#states + 1] = at
end
touch()
return states
`)

// script returns a script with the prelude and its constants.
func script(body string) *redis.Script {
	constants := fmt.Sprintf("local MAXLOST, MAXEXPIRED, LOST = %d, %d, '%s'\n", maxLost,
		maxExpired, lostAnswer)
	return redis.NewScript(constants + prelude + body)
}

// runnerQueue is the queue of one runner in Redis.
type runnerQueue struct {
	client  redis.UniversalClient
	keys    []string
	answers string // begins the keys of answers
	bell    string
}

func newRunnerQueue(client redis.UniversalClient, prefix, runner string) *runnerQueue {
	key := func(kind string) string { return prefix + ":async:" + kind + ":{" + runner + "}" }
	q := &runnerQueue{client: client, answers: key("answers") + ":", bell: key("bell")}
	for _, kind := range []string{"queue", "items", "leases", "workers", "offerers", "bell"} {
		q.keys = append(q.keys, key(kind))
	}
	return q
}

// run runs a script.
func (q *runnerQueue) run(ctx context.Context, s *redis.Script, args ...any) *redis.Cmd {
	return s.Run(ctx, q.client, q.keys, append([]any{keep.Milliseconds(), q.answers}, args...)...)
}

// offer adds an item. served is false if the runner has no worker; then the item is not added.
func (q *runnerQueue) offer(
	ctx context.Context, offerer string, ttl time.Duration, id string, deadline time.Time,
	body []byte,
) (served bool, err error) {
	return q.run(ctx, offerScript, offerer, ttl.Milliseconds(), id, deadline.UnixMilli(),
		body).Bool()
}

// withdraw removes an item and returns the state that it had.
func (q *runnerQueue) withdraw(ctx context.Context, id string) (state, error) {
	was, err := q.run(ctx, withdrawScript, id).Int()
	return state(was), err
}

// check is a sign of life of an offerer, and returns the states of items.
func (q *runnerQueue) check(
	ctx context.Context, offerer string, ttl time.Duration, ids []string,
) ([]state, error) {
	args := []any{offerer, ttl.Milliseconds()}
	for _, id := range ids {
		args = append(args, id)
	}
	got, err := q.run(ctx, checkScript, args...).Int64Slice()
	if err != nil {
		return nil, err
	}
	if len(got) != len(ids) {
		return nil, fmt.Errorf("check %d items in Redis: got %d states", len(ids), len(got))
	}
	states := make([]state, len(got))
	for i, s := range got {
		states[i] = state(s)
	}
	return states, nil
}

// collect waits for answers for an offerer and removes them. Each is "ID\nANSWER".
func (q *runnerQueue) collect(
	ctx context.Context, offerer string, wait time.Duration,
) ([]string, error) {
	list := q.answers + offerer
	first, err := q.client.BLPop(ctx, wait, list).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	more, err := q.client.LPopCount(ctx, list, maxCollected).Result()
	if err != nil { // those are popped later, or offered again
		more = nil
	}
	return append(first[1:], more...), nil
}

// maxCollected limits the answers that one call collects.
const maxCollected = 64

// lease is an item that a worker holds.
type lease struct {
	id, token string
	body      string
}

// take leases up to n items to a worker.
func (q *runnerQueue) take(
	ctx context.Context, worker string, n int, ttl time.Duration, token string,
) ([]lease, error) {
	got, err := q.run(ctx, takeScript, worker, ttl.Milliseconds(), n, ttl.Milliseconds(),
		token).StringSlice()
	if err != nil {
		return nil, err
	}
	var all []lease
	for i := 0; i+1 < len(got); i += 2 {
		all = append(all, lease{id: got[i], token: token, body: got[i+1]})
	}
	return all, nil
}

// await waits until the queue may have items, or for a time.
func (q *runnerQueue) await(ctx context.Context, wait time.Duration) error {
	err := q.client.BLPop(ctx, wait, q.bell).Err()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// renew extends the leases of a worker by ttl, and returns the ids that it does not hold any more.
// The worker counts as alive for life; 0: it takes no more.
func (q *runnerQueue) renew(
	ctx context.Context, worker string, life, ttl time.Duration, held []lease,
) (gone []string, err error) {
	args := []any{worker, life.Milliseconds(), ttl.Milliseconds()}
	for _, l := range held {
		args = append(args, l.id, l.token)
	}
	return q.run(ctx, renewScript, args...).StringSlice()
}

// answer returns the answer of an item. current is false if its lease has passed to another.
func (q *runnerQueue) answer(
	ctx context.Context, l lease, answer []byte,
) (current bool, err error) {
	return q.run(ctx, answerScript, l.id, l.token, answer).Bool()
}

// release puts an item back that was not begun.
func (q *runnerQueue) release(ctx context.Context, l lease) error {
	return q.run(ctx, releaseScript, l.id, l.token).Err()
}

// leave removes a worker.
func (q *runnerQueue) leave(ctx context.Context, worker string) error {
	return q.run(ctx, leaveScript, worker).Err()
}

// itemID returns the id of an item of an offerer.
func itemID(offerer string, n uint64) string { return offerer + "/" + strconv.FormatUint(n, 36) }
