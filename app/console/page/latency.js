// A latency of interactive users: where decisions have it, and its chart over time beside its objective.

import { Chart } from './chart.js';
import { dash } from './format.js';

// known returns the numbers of a list that are known.
export const known = (list) => list.filter((n) => n !== null);
export const sum = (list) => (list.length ? list.reduce((a, b) => a + b, 0) : null);

const mean = (list) => (list.length ? sum(list) / list.length : null);

// A measure has the latency of a runner, that of the pool, its objective, and what it is without batch work, all in
// milliseconds; null: unknown. A daemon of an earlier release leaves some out.
export const tokenTime = {
  key: 'token', label: 'Time per token', title: 'Time per token of interactive users, ms',
  main: 'mean of runners', without: 'without batch work',
  runner: (r) => r?.token_time_ms ?? null,
  pool: (d) => mean(known(d.runners.map(tokenTime.runner))),
  objective: (d) => d.objective_ms, alone: (d) => d.alone_ms,
};

export const firstToken = {
  key: 'first', label: 'First tokens', title: 'Time to the first token, ms',
  main: '95 % of requests within', without: 'without batch work, estimated',
  runner: (r) => r?.first_tokens?.p95_ms ?? null,
  pool: (d) => d.first_tokens?.p95_ms ?? null,
  objective: (d) => d.first_token_objective_ms ?? null, alone: (d) => d.first_token_alone_ms ?? null,
};

// isOver reports whether a latency is known to exceed the objective of a decision.
export function isOver(measure, value, decision) {
  const objective = measure.objective(decision);
  return value !== null && objective !== null && value > objective;
}

// LatencyChart shows a measure of a pool, and between which values those of its runners are.
export class LatencyChart {
  constructor(measure) {
    this.measure = measure;
    this.chart = new Chart(measure.title, [
      { name: '', class: 'range', band: 1 }, { name: '', class: 'hidden' },
      { name: measure.main, class: 'users' }, { name: 'objective', class: 'objective' },
      { name: measure.without, class: 'alone' }], (n) => (n === null ? dash : n > 0 && n < 10 ? n.toFixed(1) : n.toFixed(0)));
    this.element = this.chart.element;
    this.element.classList.add(measure.key);
  }

  update(decisions, from, to) {
    const { runner, pool, objective, alone } = this.measure;
    const ranges = decisions.map((d) => known(d.runners.map(runner)));
    const series = (of) => decisions.map((d, i) => [d.time, of(d, ranges[i])]);
    this.chart.update([
      series((_, all) => (all.length ? Math.min(...all) : null)), series((_, all) => (all.length ? Math.max(...all) : null)),
      series(pool), series(objective), series(alone)], from, to);
  }
}
