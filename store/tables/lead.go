package tables

import "github.com/tidefill/tidefill/store"

// LeadState returns the state of a leadership from its owner's row: whether the node has the
// incarnation that led, and whether its lease lasts.
func LeadState(same, leased bool) store.LeadState {
	switch {
	case !same:
		return store.LeadStopped
	case leased:
		return store.LeadLasts
	}
	return store.LeadExpired
}

// ScanLastLead reads name, node, and what LeadState gets.
func ScanLastLead(row Row) (name string, lead store.LastLead, err error) {
	var same, leased bool
	err = row.Scan(&name, &lead.Node, &same, &leased)
	lead.State = LeadState(same, leased)
	return name, lead, err
}
