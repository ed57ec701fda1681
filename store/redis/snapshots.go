package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// publishScript replaces a snapshot unless one of a higher epoch is there, and drops those of the
// kind that are too old. A value is "EPOCH MILLISECONDS ENVELOPE\nDATA".
var publishScript = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local keep = tonumber(ARGV[4])
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
	local epoch, at = string.match(all[i + 1], '^(%-?%d+) (%d+) ')
	if now - at >= keep then
		redis.call('HDEL', KEYS[1], all[i])
	elseif all[i] == ARGV[1] and tonumber(epoch) > tonumber(ARGV[2]) then
		return epoch
	end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. string.format('%.0f', now) .. ' ' .. ARGV[3])
redis.call('PEXPIRE', KEYS[1], keep)
return ''
`)

// snapshotsScript returns all snapshots of a kind, and the time.
var snapshotsScript = redis.NewScript(`
local time = redis.call('TIME')
local all = redis.call('HGETALL', KEYS[1])
all[#all + 1] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return all
`)

// envelope is what is kept of a snapshot besides its data, which stay as they are: base64 in JSON
// would add a third to what is JSON already.
type envelope struct{ Node string }

// Publish implements [live.Snapshots].
func (db *DB) Publish(ctx context.Context, kind string, s live.Snapshot) error {
	head, err := json.Marshal(envelope{Node: s.Node})
	if err != nil {
		return fmt.Errorf("publish %s of %s: %w", kind, s.Name, err)
	}
	var newer string
	err = db.call(ctx, func(ctx context.Context) (err error) {
		newer, err = publishScript.Run(ctx, db.client, []string{db.key("snapshots", kind)},
			s.Name, s.Epoch, string(head)+"\n"+string(s.Data),
			live.KeepSnapshots.Milliseconds()).Text()
		return err
	})
	if err == nil && newer != "" {
		err = fmt.Errorf("epoch %s is published, this one is of %d: %w", newer, s.Epoch,
			store.ErrFenced)
	}
	if err != nil {
		return fmt.Errorf("publish %s of %s: %w", kind, s.Name, err)
	}
	return nil
}

// Snapshots implements [live.Snapshots].
func (db *DB) Snapshots(ctx context.Context, kind string) (all []live.Snapshot, err error) {
	var values []string
	err = db.call(ctx, func(ctx context.Context) (err error) {
		values, err = snapshotsScript.Run(ctx, db.client,
			[]string{db.key("snapshots", kind)}).StringSlice()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	var now int64
	if len(values)%2 == 1 {
		_, _ = fmt.Sscan(values[len(values)-1], &now)
	}
	for i := 0; i+1 < len(values); i += 2 {
		s := live.Snapshot{Name: values[i]}
		if readSnapshot(values[i+1], now, &s) && s.Age < live.KeepSnapshots {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b live.Snapshot) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// readSnapshot reads a value. ok is false for one of another version of this package.
func readSnapshot(value string, now int64, s *live.Snapshot) (ok bool) {
	epoch, rest, _ := strings.Cut(value, " ")
	at, rest, _ := strings.Cut(rest, " ")
	head, data, ok := strings.Cut(rest, "\n")
	var published int64
	if _, err := fmt.Sscan(epoch, &s.Epoch); err != nil || !ok {
		return false
	}
	if _, err := fmt.Sscan(at, &published); err != nil {
		return false
	}
	var e envelope
	if json.Unmarshal([]byte(head), &e) != nil {
		return false
	}
	s.Node, s.Data = e.Node, []byte(data)
	s.Age = max(0, time.Duration(now-published)*time.Millisecond)
	return true
}
