package console

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Peer is what another process has published of the pools that it leads.
type Peer struct {
	Node string
	Age  time.Duration // the time since it was published
	Data []byte        // as its Published returned it
	// NotLed is a reason, in words, if the process has probably ended; empty: it runs.
	NotLed string
}

// published is what a process publishes of its pools.
type published struct {
	Pools    []json.RawMessage `json:"pools"`
	Degraded []json.RawMessage `json:"degraded"`
}

// Published returns what this process knows of the pools that it leads, for the consoles of others.
func (c *Console) Published() ([]byte, error) {
	pools, sources := c.ownPools()
	return json.Marshal(struct {
		Pools    []pool     `json:"pools"`
		Degraded []degraded `json:"degraded"`
	}{pools, sources})
}

// fromPeers adds what other processes have published about pools that are not in the list. Peers
// come in the order in which they are preferred. What one of another release has published may be
// unreadable, and is absent then.
func (c *Console) fromPeers(ctx context.Context, list *poolList) {
	known := map[string]bool{}
	for _, p := range list.Data {
		known[p.(pool).Name] = true
	}
	for _, peer := range c.deps.Peers(ctx) {
		if peer.Node == c.deps.Node {
			continue
		}
		var of published
		if json.Unmarshal(peer.Data, &of) != nil {
			continue
		}
		for _, raw := range of.Pools {
			members, name, err := peerPool(raw, peer)
			if err == nil && !known[name] {
				known[name] = true
				list.Data = append(list.Data, members)
			}
		}
		for _, raw := range of.Degraded {
			list.Degraded = append(list.Degraded, raw)
		}
	}
}

// peerPool returns a pool as a peer published it, with its age. Of a peer that has probably ended
// nothing is shown that was so at that moment only.
func peerPool(raw json.RawMessage, peer Peer) (
	members map[string]json.RawMessage, name string, err error,
) {
	if err = json.Unmarshal(raw, &members); err != nil {
		return nil, "", err
	}
	if err = json.Unmarshal(members["name"], &name); err != nil {
		return nil, "", err
	}
	members["age_s"] = encoded(seconds(peer.Age))
	if peer.NotLed == "" {
		return members, name, nil
	}
	members["not_led"] = encoded(peer.NotLed)
	var last map[string]json.RawMessage
	if err = json.Unmarshal(members["decision"], &last); err != nil {
		return nil, "", err
	}
	delete(last, "terms")
	for field := range last {
		if field != "time" && field != "evicted_total" {
			last[field] = json.RawMessage("null")
		}
	}
	for field, value := range map[string]any{"reason": plan.ReasonOf(peer.NotLed),
		"allowance_reason": "none", "in_flight": 0, "allowance": 0, "jobs": 0, "runners": []any{}} {
		last[field] = encoded(value)
	}
	members["decision"] = encoded(last)
	return members, name, nil
}

// encoded returns a value that has no fault as JSON.
func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a mistake of the program
	}
	return text
}

// poolNames lists the pools that are known, by this process and by others.
func (c *Console) poolNames(ctx context.Context) []string {
	names := c.deps.Decisions.Names()
	for _, peer := range c.deps.Peers(ctx) {
		var of published
		if json.Unmarshal(peer.Data, &of) != nil {
			continue
		}
		for _, raw := range of.Pools {
			if _, name, err := peerPool(raw, peer); err == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// seconds returns a duration in seconds, to the millisecond.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// findPeerPool returns the last decision of a pool that another process leads.
func (c *Console) findPeerPool(ctx context.Context, name string) (last json.RawMessage) {
	for _, peer := range c.deps.Peers(ctx) {
		var of published
		if peer.Node == c.deps.Node || json.Unmarshal(peer.Data, &of) != nil {
			continue
		}
		for _, raw := range of.Pools {
			if members, found, err := peerPool(raw, peer); err == nil && found == name {
				return members["decision"]
			}
		}
	}
	return nil
}
