// A pool as a row: its state, what its users feel, and what limits it. The link selects it.

import { h, name, names, set, setParts, setText } from './dom.js';
import { count, dash, milliseconds } from './format.js';
import { firstToken, isOver, tokenTime } from './latency.js';
import { kind, meaning, remedy, words } from './reasons.js';

// The state of a pool by the kind of what limits it.
const states = {
  flow: 'lines flow', idle: 'idle', users: 'users have it', careful: 'careful', limit: 'at a limit', harm: 'users suffer', fault: 'needs help',
};

export class OverviewRow {
  constructor({ pool }) {
    this.link = h('a', { href: '#pool/' + encodeURIComponent(pool.name) });
    this.cells = {};
    this.element = h('tr', {}, h('th', { scope: 'row' }, this.link));
    for (const [key, label] of [['state', 'State'], ['runners', 'Runners'], ['lines', 'Lines'], ['token', tokenTime.label], ['first', firstToken.label], ['limit', 'Limited by']]) {
      this.cells[key] = h('span', { class: key === 'state' ? 'reason' : 'number' });
      this.element.append(h('td', { 'data-label': label }, this.cells[key]));
    }
  }

  update({ pool, selected }) {
    const d = pool.decision, { state, runners, lines, token, first, limit } = this.cells;
    const tone = pool.not_led ? 'fault' : kind(d.reason), failing = pool.failures.filter((f) => f.failing).length;
    setParts(this.link, ...(pool.models.length ? names(pool.models) : [name(pool.name)]));
    set(this.link, 'aria-current', selected ? 'true' : null);
    setText(state, pool.not_led ? 'not led' : failing && tone !== 'fault' ? 'runner failing' : states[tone]);
    set(state, 'data-kind', failing ? 'fault' : tone);
    set(state, 'title', pool.not_led ?? '');
    setText(runners, count(d.runners.length) + (failing ? `, ${failing} failing` : ''));
    setText(lines, `${count(d.in_flight)} / ${count(d.allowance)}`);
    for (const [cell, measure] of [[token, tokenTime], [first, firstToken]]) {
      const value = measure.pool(d), objective = measure.objective(d);
      setText(cell, value === null ? dash : milliseconds(value) + (objective === null ? '' : ` of ${milliseconds(objective)}`));
      set(cell, 'data-kind', isOver(measure, value, d) ? 'over' : null);
    }
    setText(limit, words(d.reason));
    set(limit, 'title', [meaning(d.reason), remedy(d.reason)].filter(Boolean).join(' '));
  }
}
