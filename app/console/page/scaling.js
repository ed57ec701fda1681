// The replicas that a pool should have, as a row.

import { h, name, setText } from './dom.js';
import { count, duration, relative } from './format.js';

export class ScalingView {
  constructor({ pool }) {
    this.cells = {};
    this.element = h('tr', {}, h('th', { scope: 'row' }, name(pool.name)));
    for (const [key, label] of [['wanted', 'Wanted'], ['exist', 'Exist'], ['reason', 'Why'], ['lines', 'Lines left'], ['start', 'Start']]) {
      this.cells[key] = h('span', key === 'reason' ? {} : { class: 'number' });
      this.element.append(h('td', { 'data-label': label }, this.cells[key]));
    }
  }

  update({ pool, now }) {
    const { wanted, exist, reason, lines, start } = this.cells, t = pool.terms;
    setText(wanted, `${pool.wanted} of ${pool.min} to ${pool.max}`);
    setText(exist, [[pool.ready, 'ready'], [pool.starting, 'starting'], [pool.draining, 'draining']]
      .filter(([n], i) => n || !i).map(([n, phase]) => `${n} ${phase}`).join(', '));
    setText(reason, pool.sentence);
    setText(lines, count(pool.lines) + (pool.in_flight ? `, ${count(pool.in_flight)} in flight` : ''));
    setText(start, (t.cold_start_seconds === null ? '' : `takes ${duration(t.cold_start_seconds)}`) +
      (t.latest_start === null ? '' : `, next ${relative(t.latest_start, now)}`));
  }
}
