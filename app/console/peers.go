package console

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Peer is what another process has published of the pools that it leads.
type Peer struct {
	Node string
	Age  time.Duration // for how long it has been published
	Data []byte        // as its Published returned it
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
// come in the order in which they are preferred.
func (c *Console) fromPeers(ctx context.Context, list *poolList) error {
	known := map[string]bool{}
	for _, p := range list.Data {
		known[p.(pool).Name] = true
	}
	for _, peer := range c.deps.Peers(ctx) {
		if peer.Node == c.deps.Node {
			continue
		}
		var of published
		if err := json.Unmarshal(peer.Data, &of); err != nil {
			return fmt.Errorf("read the pools of node %s: %w", peer.Node, err)
		}
		for _, raw := range of.Pools {
			members, name, err := peerPool(raw, peer)
			if err != nil {
				return fmt.Errorf("read a pool of node %s: %w", peer.Node, err)
			}
			if !known[name] {
				known[name] = true
				list.Data = append(list.Data, members)
			}
		}
		for _, raw := range of.Degraded {
			list.Degraded = append(list.Degraded, raw)
		}
	}
	return nil
}

// peerPool returns a pool as a peer published it, with its age.
func peerPool(raw json.RawMessage, peer Peer) (
	members map[string]json.RawMessage, name string, err error,
) {
	if err = json.Unmarshal(raw, &members); err != nil {
		return nil, "", err
	}
	if err = json.Unmarshal(members["name"], &name); err != nil {
		return nil, "", err
	}
	members["age_s"], err = json.Marshal(seconds(peer.Age))
	return members, name, err
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
