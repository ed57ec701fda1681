package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidefill/tidefill/store/live"
)

// takeScript is live.Limit.Take in microseconds, by the clock of Redis. It returns the time until
// the window is empty, and the time to wait.
var takeScript = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local step, per = tonumber(ARGV[1]), tonumber(ARGV[2])
local empty = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local over = empty + step - now - per
if over > 0 then
	return {empty - now, math.ceil(over)}
end
redis.call('SET', KEYS[1], string.format('%.0f', empty + step), 'PX',
	math.ceil((empty + step - now) / 1000))
return {empty + step - now, 0}
`)

// giveScript takes one request back, in microseconds.
var giveScript = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then
	redis.call('DECRBY', KEYS[1], ARGV[1])
end
return 0
`)

// Give implements [live.Windows].
func (db *DB) Give(ctx context.Context, key string, l live.Limit) {
	err := db.call(ctx, func(ctx context.Context) error {
		return giveScript.Run(ctx, db.client, []string{db.key("window", key)},
			l.Step().Microseconds()).Err()
	})
	if err != nil {
		db.windows.Give(ctx, key, l)
	}
}

// Take implements [live.Windows].
func (db *DB) Take(ctx context.Context, key string, l live.Limit) live.Taken {
	var times []int64
	err := db.call(ctx, func(ctx context.Context) (err error) {
		times, err = takeScript.Run(ctx, db.client, []string{db.key("window", key)},
			l.Step().Microseconds(), l.Per.Microseconds()).Int64Slice()
		return err
	})
	if err != nil || len(times) != 2 {
		return db.windows.Take(ctx, key, l)
	}
	return l.Taken(time.Duration(times[0])*time.Microsecond,
		time.Duration(times[1])*time.Microsecond)
}
