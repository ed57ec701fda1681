// Package webhook notifies endpoints of the operator when batches end, and when it becomes known
// whether they will meet their deadlines.
//
// What is to be delivered follows from the store alone. Each endpoint has a cursor over the changes
// of batches, and its last notice about each batch. A round looks for changes behind the cursor,
// and stores the notices that they make together with the new cursor. Notices that are due are sent
// and are then marked as delivered, so each is delivered at least once, with the same webhook-id in
// every attempt. A newer notice about a batch replaces one that was not delivered: endpoints that
// were away get what is true now, and the store holds at most one notice for each batch.
//
// Verdicts are no changes of a batch, so the forecasts of all batches are read every few seconds
// and compared with the last notices.
//
// Of the processes that share a store, one leads each endpoint. Each endpoint has goroutines of its
// own, so one that hangs does not delay the others. Memory does not grow with the number of batches
// or of notices, except for the ids of the batches that have not ended.
package webhook
