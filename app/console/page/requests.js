// The interactive requests of a pool that pass through, and their use cases, as rows.

import { h, name, setParts, setText, Keyed } from './dom.js';
import { count, dash, milliseconds, percent } from './format.js';
import { meaning } from './reasons.js';

class UseCaseRow {
  constructor() {
    this.title = h('th', { scope: 'row' });
    this.cells = ['Class', 'Requests', 'Per token, 95 %', 'Objective', 'Attained', 'Refused']
      .map((label) => h('td', { 'data-label': label }));
    this.element = h('tr', {}, this.title, ...this.cells);
  }

  update(u) {
    setParts(this.title, name(u.name));
    const refused = Object.entries(u.refused).map(([why, n]) => `${count(n)} ${why}`).join(', ');
    [u.class, count(u.requests), ...[u.p95_ms, u.objective_ms].map((t) => (t === null ? dash : milliseconds(t))),
      u.attained === null ? dash : percent(u.attained), refused || dash]
      .forEach((text, i) => setText(this.cells[i], text));
  }
}

export class RequestsView {
  constructor() {
    this.sentence = h('p', { class: 'muted' });
    this.rows = new Keyed(h('tbody'), () => new UseCaseRow());
    this.table = h('table', {}, h('thead', {}, h('tr', {},
      ...['Use case', 'Class', 'Requests in 5 min', 'Per token, 95 %', 'Objective', 'Attained', 'Refused'].map((label) => h('th', { scope: 'col' }, label)))), this.rows.parent);
    this.element = h('div', { hidden: '' }, this.sentence, this.table);
  }

  update(requests) {
    this.element.hidden = !requests;
    if (!requests) return;
    const classes = requests.classes.filter((c) => c.running || c.waiting)
      .map((c) => `${c.name} ${count(c.running)} + ${count(c.waiting)} waiting`).join(', ');
    setText(this.sentence, `Requests that pass through: ${classes || 'none'}; ${count(requests.places)} places` +
      (requests.bound === null ? '' : `, ${count(requests.bound)} for classes without an objective`) + '.' +
      (requests.reason ? ` ${meaning(requests.reason)}` : ''));
    this.table.hidden = requests.use_cases.length === 0;
    this.rows.update(requests.use_cases, (u) => `${u.name}\n${u.class}`);
  }
}

// fallbackText says what a fallback has done instead of its pool, and what it costs.
export function fallbackText(f) {
  return `Fallback of ${f.instead}: ${count(f.requests)} requests, ${count(f.lines)} lines, ` +
    `${count(f.input_tokens + f.output_tokens)} tokens since the start` +
    (f.money_today == null ? '.' : `; ${f.money_today.toFixed(2)} of ${f.money_per_day.toFixed(2)} spent today.`);
}
