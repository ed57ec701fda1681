// Who has used what in the last week: the section of the console.

import { get } from './api.js';
import { Keyed } from './dom.js';
import { minutely } from './minutely.js';
import { UsageRow } from './usage.js';

const rows = new Keyed(document.getElementById('used-rows'), (item) => new UsageRow(item));

async function refresh() {
  const { data, others } = await get('admin/usage');
  document.getElementById('used').hidden = data.length === 0;
  const items = data.map((used) => ({ tenant: used.tenant, model: used.model, used }));
  if (others) items.push({ tenant: '', model: others.pairs === 1 ? '1 other' : `${others.pairs.toLocaleString('en')} others`, used: others });
  rows.update(items, ({ tenant, model }) => JSON.stringify([tenant, model]));
}

minutely(refresh);
