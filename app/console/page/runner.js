// A runner of a pool, as a row.

import { h, name, set, setText } from './dom.js';
import { Band, Spark } from './chart.js';
import { age, count, milliseconds } from './format.js';
import { firstToken, isOver, tokenTime } from './latency.js';
import { kind, meaning, remedy, words } from './reasons.js';

// limitOf returns what keeps lines from a runner.
export function limitOf(runner) {
  return runner.breaker_open && runner.reason !== 'failing' ? 'unreachable' : runner.reason;
}

export class RunnerView {
  constructor({ runner }) {
    this.reason = h('span', { class: 'reason' });
    this.latencies = [tokenTime, firstToken].map((measure) => ({ measure, spark: new Spark([{ class: 'users' }, { class: 'objective' }]) }));
    this.failed = h('span', { class: 'reason', hidden: '' });
    this.lines = new Spark([{ class: 'allowance', stepped: true }, { class: 'flight', stepped: true }]);
    this.band = new Band('Limiting reason over time');
    this.cells = {};
    const cell = (key, label, ...children) => {
      this.cells[key] = h('span', { class: 'number' });
      return h('td', { 'data-label': label }, h('div', { class: 'cell' }, this.cells[key], ...children));
    };
    this.element = h('tr', {},
      h('th', { scope: 'row' }, name(runner.name)),
      h('td', { 'data-label': 'Limited by' }, h('div', { class: 'cell stacked' }, this.reason, ' ', this.failed, this.band.element)),
      ...this.latencies.map(({ measure, spark }) => cell(measure.key, measure.label, spark.element)), cell('lines', 'Lines', this.lines.element),
      cell('users', 'Interactive'), cell('prompt', 'Prompt tokens'), cell('reading', 'Last reading'));
  }

  update({ runner, decision, series, from, to, failures }) {
    const reason = limitOf(runner);
    setText(this.reason, words(reason) + (runner.evicting ? ', evicting' : ''));
    set(this.reason, 'data-kind', kind(reason));
    set(this.reason, 'title', [meaning(reason), remedy(reason)].filter(Boolean).join(' '));
    this.failed.hidden = !failures;
    setText(this.failed, failures ? failures.text : '');
    set(this.failed, 'data-kind', failures?.failing ? 'fault' : 'careful');
    for (const { measure, spark } of this.latencies) {
      const value = measure.runner(runner), shown = this.cells[measure.key];
      setText(shown, milliseconds(value));
      set(shown, 'data-kind', isOver(measure, value, decision) ? 'over' : null);
      spark.update([series.map(([d, r]) => [d.time, measure.runner(r)]), series.map(([d]) => [d.time, measure.objective(d)])], from, to);
    }
    setText(this.cells.lines, `${count(runner.in_flight)} / ${count(runner.allowance)}`);
    setText(this.cells.users, runner.interactive_running === null ? 'unknown'
      : `${count(runner.interactive_running)} + ${runner.interactive_waiting === null ? 'unknown' : count(runner.interactive_waiting)}`);
    setText(this.cells.prompt, count(runner.prompt_tokens) +
      (runner.prompt_tokens_allowed === null ? '' : ' / ' + count(runner.prompt_tokens_allowed)));
    setText(this.cells.reading, runner.reading ? `${runner.reading.source}, ${age(runner.reading.age_s)}` : 'never');
    this.lines.update([series.map(([d, r]) => [d.time, r?.allowance ?? null]),
      series.map(([d, r]) => [d.time, r?.in_flight ?? null])], from, to);
    this.band.update(series.map(([d, r]) => [d.time, r?.reason]), from, to);
  }
}
