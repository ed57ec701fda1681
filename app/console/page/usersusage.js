// What a user has used in the last 30 days: the section of the page of users.

import { call } from './api.js';
import { Keyed } from './dom.js';
import { UsageRow } from './usage.js';

const path = 'v1/organization/usage/completions', days = 30, interval = 30_000; // milliseconds
const section = document.getElementById('used');
const rows = new Keyed(document.getElementById('used-rows'), (item) => new UsageRow(item));
let last = 0, lastEnded = 0; // when it was read, and the number of ended batches then

export function hideUsage() {
  section.hidden = true;
  last = 0;
}

// showUsage reads the usage again if it was read some time ago, or if batches have ended since.
export async function showUsage(ended) {
  if (Date.now() - last < interval && ended === lastEnded) return;
  const sums = new Map(), tenants = new Set();
  const query = new URLSearchParams([['start_time', Math.floor(Date.now() / 1000) - days * 86400], ['limit', days + 1], ['group_by', 'project_id'], ['group_by', 'model']]);
  do {
    const page = await (await call('GET', `${path}?${query}`)).json();
    for (const used of page.data.flatMap((bucket) => bucket.results)) {
      tenants.add(used.project_id);
      const key = JSON.stringify([used.project_id, used.model]);
      const sum = sums.get(key) ?? { tenant: used.project_id, model: used.model, requests: 0, input_tokens: 0, input_cached_tokens: 0, output_tokens: 0 };
      sum.requests += used.num_model_requests;
      for (const kind of ['input_tokens', 'input_cached_tokens', 'output_tokens']) sum[kind] += used[kind];
      sums.set(key, sum);
    }
    query.set('page', page.next_page ?? '');
  } while (query.get('page'));
  last = Date.now();
  lastEnded = ended;
  section.hidden = sums.size === 0;
  // The key of an admin shows all tenants.
  rows.update([...sums].sort(([, a], [, b]) => b.input_tokens + b.output_tokens - a.input_tokens - a.output_tokens)
    .map(([key, used]) => ({ key, tenant: null, model: tenants.size > 1 ? `${used.tenant}: ${used.model}` : used.model, used })), (item) => item.key + tenants.size);
}
