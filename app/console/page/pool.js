// A pool: what limits it now, what its interactive users feel, and the last hour.

import { h, name, names, set, setFigure, setParts, setText, Keyed } from './dom.js';
import { Band, Chart, spanOf } from './chart.js';
import { age, count, dash, milliseconds, percent, times } from './format.js';
import { History } from './history.js';
import { LatencyChart, firstToken, isOver, known, sum, tokenTime } from './latency.js';
import { Meanings, kind, meaning, remedy, words } from './reasons.js';
import { fallbackText, RequestsView } from './requests.js';
import { RunnerView, limitOf } from './runner.js';

export class PoolView {
  constructor() {
    this.history = new History();
    this.title = h('h2', { tabindex: '-1' });
    this.policy = h('span', { class: 'tag' });
    this.reason = h('span', { class: 'reason' });
    this.sentence = h('p', { class: 'sentence' });
    this.promise = h('p', { class: 'muted promise' });
    this.warnings = new Keyed(h('ul', { class: 'notices' }), () => new Notice('warn'));
    this.figures = {};
    const figures = h('dl', { class: 'figures' });
    for (const [key, name] of [['lines', 'Batch lines'], ['users', 'Interactive requests'], ['token', 'Time per token'],
      ['first', 'First tokens'], ['late', 'Late requests'], ['evicted', 'Lines evicted']]) {
      const value = h('dd', { class: 'number' }), note = h('dd', { class: 'muted' });
      this.figures[key] = { value, note };
      figures.append(h('div', {}, h('dt', {}, name), value, note));
    }
    this.latencies = [tokenTime, firstToken].map((measure) => new LatencyChart(measure));
    this.lines = new Chart('Batch lines', [
      { name: 'allowed', class: 'allowance', stepped: true }, { name: 'in flight', class: 'flight', stepped: true }],
    (n) => (n === null ? dash : n < 3 && n % 1 ? n.toFixed(1) : n.toFixed(0)));
    this.band = new Band('Limiting reason over time');
    this.shares = h('span', { class: 'legend' });
    this.meanings = new Meanings();
    this.runners = new Keyed(h('tbody'), (r) => new RunnerView(r));
    this.noRunner = h('p', { class: 'muted empty', hidden: '' }, 'No runner serves this pool now.');
    this.table = h('table', { class: 'runners' },
      h('thead', {}, h('tr', {}, ...['Runner', 'Limited by', tokenTime.label, firstToken.label, 'Lines', 'Interactive', 'Prompt tokens', 'Last reading']
        .map((name) => h('th', { scope: 'col' }, name)))), this.runners.parent);
    this.requests = new RequestsView();
    this.fallback = h('p', { class: 'muted', hidden: '' });
    this.element = h('section', { class: 'card pool' },
      h('div', { class: 'head' }, this.title, this.policy, h('span', { class: 'spacer' }), this.reason),
      this.sentence, this.promise, this.warnings.parent, figures,
      h('div', { class: 'charts' }, ...this.latencies.map((chart) => chart.element), this.lines.element),
      h('div', { class: 'reasons' }, h('div', { class: 'caption' }, h('span', { class: 'title' }, 'Limited by'), this.shares), this.band.element,
        this.meanings.element),
      this.table, this.noRunner, this.fallback, this.requests.element);
  }

  update(pool) {
    const d = pool.decision;
    setParts(this.title, ...names(pool.models));
    setParts(this.policy, pool.policy, ...(pool.age_s > 0 ? [' · as ', name(pool.node), ` published it ${age(pool.age_s)}`] : []));
    setText(this.reason, words(d.reason));
    set(this.reason, 'data-kind', kind(d.reason));
    setText(this.sentence, pool.not_led?.replace(/^\w+: /, '') ?? [meaning(d.reason), remedy(d.reason)].filter(Boolean).join(' '));
    setText(this.promise, pool.protection);
    set(this.promise, 'data-kind', pool.protected ? null : 'unprotected');
    this.warnings.update(pool.warnings.map((w) => ({ key: w.code, text: `${words(w.code)}: ${w.text}`, title: w.code })), (w) => w.key);
    this.failures = pool.failures;
    this.fallback.hidden = !pool.fallback;
    if (pool.fallback) setText(this.fallback, fallbackText(pool.fallback));
    this.requests.update(pool.requests);
    this.updateFigures(d);
    this.drawHistory(d);
  }

  updateFigures(d) {
    const put = (key, value, note) => {
      setFigure(this.figures[key].value, value);
      setText(this.figures[key].note, [note].flat().join('\n'));
    };
    put('lines', `${count(d.in_flight)} / ${count(d.allowance)}`, 'in flight / allowed');
    const running = sum(known(d.runners.map((r) => r.interactive_running)));
    const waiting = sum(known(d.runners.map((r) => r.interactive_waiting)));
    put('users', running === null ? 'unknown' : `${count(running)} + ${waiting === null ? 'unknown' : count(waiting)}`,
      running === null ? 'no metrics show them' : 'running + waiting');
    const mean = tokenTime.pool(d);
    put('token', mean === null ? 'unknown' : milliseconds(mean), d.objective_ms === null ? 'no objective is known'
      : [`objective ${milliseconds(d.objective_ms)}${d.configured_objective_ms ? ` instead of the configured ${milliseconds(d.configured_objective_ms)}` : ''}`, ...(d.target_ms ? [`target ${milliseconds(d.target_ms)}`] : []),
        ...(d.alone_ms === null ? [] : [`${milliseconds(d.alone_ms)} without batch work`])]);
    const first = firstToken.pool(d), objective = firstToken.objective(d);
    put('first', first === null ? 'unknown' : milliseconds(first), [
      first === null ? 'none came in the last minute' : '95 % came within this time' + (d.first_tokens.source === 'gateway' ? '' : ', batch lines included'),
      objective === null ? '' : `objective ${milliseconds(objective)}`,
      d.first_token_slowdown === null ? '' : `${times(d.first_token_slowdown)} the time without batch work` +
        (d.first_token_slowdown_allowed === null ? '' : `, ${times(d.first_token_slowdown_allowed)} allowed`),
    ].filter(Boolean));
    for (const [measure, value] of [[tokenTime, mean], [firstToken, first]]) {
      set(this.figures[measure.key].value, 'data-kind', isOver(measure, value, d) ? 'over' : null);
    }
    const g = d.gateway, requests = g ? g.first_tokens_total : 0;
    put('late', requests > 0 ? percent(g.late_first_tokens_total / requests) : 'unknown',
      g ? `first tokens of ${count(requests)}` : 'no gateway counts them');
    put('evicted', count(d.evicted_total), 'since the start');
  }

  drawHistory(d) {
    const all = this.history.decisions, to = d.time;
    const from = to - spanOf(all[0]?.time ?? to, to);
    for (const chart of this.latencies) chart.update(all, from, to);
    this.lines.update([all.map((one) => [one.time, one.allowance]), all.map((one) => [one.time, one.in_flight])], from, to);
    const shares = this.band.update(all.map((one) => [one.time, one.reason]), from, to);
    this.shares.replaceChildren(...shares.slice(0, 6).map(([reason, share]) => h('span', { title: meaning(reason) },
      h('i', { class: 'dot ' + kind(reason) }), words(reason) + ' ', h('b', { class: 'number' }, Math.round(100 * share) + ' %'))));
    this.meanings.update([...shares.map(([reason]) => reason), ...d.runners.map(limitOf)]);
    this.runners.update(d.runners.map((runner) => ({ runner, decision: d, series: this.history.runner(runner.name), from, to,
      failures: (this.failures ?? []).find((f) => f.runner === runner.name) })),
      (one) => one.runner.name);
    this.table.hidden = d.runners.length === 0;
    this.noRunner.hidden = d.runners.length > 0;
  }
}

// Notice is a sentence of something that is wrong: a text or, if names are in it, parts.
export class Notice {
  constructor(className) {
    this.element = h('li', { class: 'notice ' + className });
  }

  update(notice) {
    setParts(this.element, ...(notice.parts ?? [notice.text]));
    set(this.element, 'title', notice.title ?? null);
  }
}
