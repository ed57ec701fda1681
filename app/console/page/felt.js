// What users of each pool felt in the last week, by hour, and what batch work took: a section of its own, asked for once a minute.

import { get } from './api.js';
import { h, name, setText, Keyed } from './dom.js';
import { Chart } from './chart.js';
import { dash } from './format.js';
import { minutely } from './minutely.js';

const week = 7 * 86400, hour = 3600;
const section = h('section', { class: 'card', id: 'felt', hidden: '' }, h('div', { class: 'head' },
  h('h2', {}, 'What users felt'), h('span', { class: 'muted' }, 'the last 7 days, by hour')));
const percent = (n) => (n === null ? dash : n > 0 && n < 10 ? n.toFixed(n < 1 ? 2 : 1) : n.toFixed(0));
const tokens = (n) => (n === null ? dash : n.toLocaleString('en', { notation: 'compact' }));

class FeltView {
  constructor({ pool }) {
    this.summary = h('p', { class: 'sentence' });
    const late = (title) => new Chart(title, [{ name: 'beside lines', class: 'users' }, { name: 'without, estimated', class: 'alone' }], percent);
    this.charts = [late('Late first tokens, %'), late('Late by time per token, %'),
      new Chart('Batch tokens per hour', [{ name: 'done', class: 'flight' }], tokens)];
    this.element = h('section', { class: 'felt', 'data-pool': pool }, h('h3', {}, name(pool)), this.summary,
      h('div', { class: 'charts' }, ...this.charts.map((chart) => chart.element)));
  }

  update({ history, now }) {
    setText(this.summary, history.summary);
    const from = now - week, rows = new Map(history.rows.map((row) => [row.time, row]));
    // An hour is a level from its beginning to its end, and one without a row is a gap.
    const series = (of) => {
      const points = [];
      for (let time = Math.ceil(from / hour) * hour; time <= now; time += hour) {
        const row = rows.get(time), value = row ? of(row) : null;
        points.push([time, value], [Math.min(time + hour - 1, now), value]);
      }
      return points;
    };
    const share = (n) => (n === null ? null : 100 * n);
    const [first, token, batch] = this.charts;
    first.update([series((row) => share(row.first_tokens.late)), series((row) => share(row.first_tokens.late_without))], from, now);
    token.update([series((row) => share(row.tokens.late)), series((row) => share(row.tokens.late_without))], from, now);
    batch.update([series((row) => row.batch_tokens)], from, now);
  }
}

const views = new Keyed(section.appendChild(h('div')), (item) => new FeltView({ pool: item.history.pool }));

async function refresh() {
  const list = await get('admin/history?since=7d&step=hour');
  const items = list.data.filter((history) => history.rows.length > 0).map((history) => ({ history, now: list.time }));
  section.hidden = items.length === 0; // before charts are drawn, which need their width
  views.update(items, ({ history }) => history.pool);
}

document.getElementById('pools').after(section);
minutely(refresh);
