// What a tenant has used of a model, as a row.

import { h, name, setText } from './dom.js';
import { count } from './format.js';

const numbers = [['requests', 'Requests'], ['input_tokens', 'Tokens in'], ['input_cached_tokens', 'Cached'], ['output_tokens', 'Tokens out']];

export class UsageRow {
  // tenant is null where there is one only.
  constructor({ tenant, model }) {
    this.element = h('tr', {}, h('th', { scope: 'row' }, name(model)));
    if (tenant !== null) this.element.append(h('td', { 'data-label': 'Tenant' }, name(tenant)));
    this.cells = numbers.map(([, label]) => h('td', { class: 'number', 'data-label': label }));
    this.element.append(...this.cells);
  }

  update({ used }) {
    numbers.forEach(([key], i) => setText(this.cells[i], count(used[key])));
  }
}
