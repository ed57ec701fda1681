// Charts over time as SVG. Series are lists of [time, value]; null is unknown and leaves a gap.

import { h, s, set, setText } from './dom.js';
import { clock, day } from './format.js';
import { kind, words } from './reasons.js';

// A longer silence between two points is a gap, in seconds, unless decisions are that far apart there: the daemon keeps
// fewer of a pool with many runners.
const longestSilence = 45;

// gapBefore reports whether nothing is known between a point and the one before.
function gapBefore(series, i) {
  const apart = (j) => (j > 0 && j < series.length ? series[j][0] - series[j - 1][0] : 0);
  return apart(i) > longestSilence && apart(i) > 3 * Math.max(apart(i - 1), apart(i + 1));
}

// ticks are the seconds between labels, by the seconds that a chart shows.
const ticks = new Map([[300, 60], [600, 120], [900, 180], [1800, 300], [3600, 900]]), longTick = 86400;

// spanOf returns the seconds that a chart shows, so that a young history is not a speck.
export function spanOf(from, now) {
  for (const span of ticks.keys()) if (now - from <= span) return span;
  return 3600;
}

// niceTop returns a round number above a maximum, in steps that halve well.
function niceTop(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  for (const step of [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10]) if (most <= step * power * 1.0001) return step * power;
  return 10 * power;
}

function line(series, x, y, stepped) {
  let path = '', last = null;
  series.forEach(([time, value], i) => {
    if (value === null || value === undefined) {
      last = null;
      return;
    }
    const at = `${x(time).toFixed(1)},${y(value).toFixed(1)}`;
    if (last === null || gapBefore(series, i)) path += 'M' + at + 'h0'; // a point alone is a dot
    else if (stepped) path += `L${x(time).toFixed(1)},${y(last).toFixed(1)}L${at}`;
    else path += 'L' + at;
    last = value;
  });
  return path;
}

// band returns the area between two series with the same times.
function band(low, high, x, y) {
  let path = '', run = [];
  const close = () => {
    if (run.length > 1) {
      const top = run.map(([t, , b]) => `${x(t).toFixed(1)},${y(b).toFixed(1)}`);
      const bottom = run.map(([t, a]) => `${x(t).toFixed(1)},${y(a).toFixed(1)}`).reverse();
      path += 'M' + top.concat(bottom).join('L') + 'Z';
    }
    run = [];
  };
  low.forEach(([time, value], i) => {
    const above = high[i][1];
    if (value === null || above === null || gapBefore(low, i)) close();
    if (value !== null && above !== null) run.push([time, value, above]);
  });
  close();
  return path;
}

const margin = { left: 38, right: 8, top: 8, bottom: 18 };

// Chart has axes, a legend and a readout for the time under the pointer.
export class Chart {
  // series: [{name, class, stepped, band: index of the other series}]
  constructor(title, series, format) {
    this.series = series;
    this.format = format;
    this.paths = series.map((one) => s('path', { class: one.class }));
    this.grid = s('g', { class: 'grid' });
    this.cursor = s('line', { class: 'cursor', visibility: 'hidden' });
    this.svg = s('svg', { role: 'img', 'aria-label': title }, this.grid, ...this.paths, this.cursor);
    this.values = series.map(() => h('b', { class: 'number' }));
    this.when = h('span', { class: 'muted number' });
    const legend = series.map((one, i) => (one.name
      ? h('span', {}, h('i', { class: 'key ' + one.class }), one.name + ' ', this.values[i]) : ''));
    this.element = h('figure', { class: 'chart' },
      h('figcaption', {}, h('div', { class: 'caption' }, h('span', { class: 'title' }, title), this.when),
        h('div', { class: 'legend' }, ...legend)),
      this.svg);
    this.data = null;
    this.pointer = null;
    this.svg.addEventListener('pointermove', (e) => {
      this.pointer = e.offsetX;
      this.read();
    });
    this.svg.addEventListener('pointerleave', () => {
      this.pointer = null;
      this.read();
    });
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  update(data, from, to) {
    this.data = data;
    this.from = from;
    this.to = to;
    this.draw();
    this.read();
  }

  draw() {
    const width = this.svg.clientWidth, height = this.svg.clientHeight;
    if (!this.data || !width) return;
    let most = 0;
    for (const one of this.data) for (const [time, value] of one) if (time >= this.from) most = Math.max(most, value ?? 0);
    const top = niceTop(most * 1.05);
    this.x = (time) => margin.left + (time - this.from) / (this.to - this.from) * (width - margin.left - margin.right);
    this.y = (value) => height - margin.bottom - value / top * (height - margin.top - margin.bottom);
    set(this.svg, 'viewBox', `0 0 ${width} ${height}`);
    const shown = (one) => one.filter(([time]) => time >= this.from);
    this.series.forEach((one, i) => {
      const path = one.band === undefined ? line(shown(this.data[i]), this.x, this.y, one.stepped)
        : band(shown(this.data[i]), shown(this.data[one.band]), this.x, this.y);
      set(this.paths[i], 'd', path);
    });
    this.drawGrid(width, height, top);
  }

  drawGrid(width, height, top) {
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.y(share * top)) + 0.5;
      parts.push(s('line', { x1: margin.left, x2: width - margin.right, y1: y, y2: y }),
        s('text', { x: margin.left - 6, y: y + 3.5, 'text-anchor': 'end' }, this.format(share * top)));
    }
    const short = ticks.get(Math.round(this.to - this.from)), step = (short ?? longTick) * (width < 420 ? 2 : 1);
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = this.x(time);
      if (x > width - margin.right - 12) break; // the label would leave the chart
      parts.push(s('text', { x, y: height - 4, 'text-anchor': 'middle' }, short ? clock(time) : day(time)));
    }
    this.grid.replaceChildren(...parts);
  }

  // read shows the values at the pointer or, without one, the last ones.
  read() {
    if (!this.data || !this.x) return;
    const all = this.data[0];
    let index = all.length - 1;
    if (this.pointer !== null && all.length) {
      const at = this.from + (this.pointer - margin.left) / (this.svg.clientWidth - margin.left - margin.right) * (this.to - this.from);
      index = nearest(all, at);
    }
    this.series.forEach((one, i) => setText(this.values[i], this.format(this.data[i][index]?.[1] ?? null)));
    const time = all[index]?.[0];
    setText(this.when, this.pointer === null || !time ? '' : this.to - this.from > longTick ? `${day(time)}, ${clock(time)}` : clock(time, true));
    if (this.pointer !== null && time) {
      const x = this.x(time);
      for (const [name, value] of Object.entries({ x1: x, x2: x, y1: margin.top, y2: this.svg.clientHeight - margin.bottom, visibility: 'visible' })) {
        set(this.cursor, name, value);
      }
    } else set(this.cursor, 'visibility', 'hidden');
  }
}

function nearest(series, at) {
  let low = 0, high = series.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (series[middle][0] < at) low = middle + 1;
    else high = middle;
  }
  return low > 0 && at - series[low - 1][0] < series[low][0] - at ? low - 1 : low;
}

// Spark is a small chart without axes.
export class Spark {
  constructor(series) {
    this.series = series;
    this.paths = series.map((one) => s('path', { class: one.class }));
    this.element = s('svg', { class: 'spark', 'aria-hidden': 'true', preserveAspectRatio: 'none', viewBox: '0 0 120 28' }, ...this.paths);
  }

  update(data, from, to) {
    let most = 0;
    for (const one of data) for (const [time, value] of one) if (time >= from) most = Math.max(most, value ?? 0);
    const x = (time) => (time - from) / (to - from) * 120;
    const y = (value) => 27 - (most > 0 ? value / most : 0) * 25;
    this.series.forEach((one, i) => set(this.paths[i], 'd', line(data[i].filter(([time]) => time >= from), x, y, one.stepped)));
  }
}

// Band colors the limiting reason over time. Where reasons alternate faster than a pixel, the most
// frequent one shows.
export class Band {
  constructor(label) {
    this.element = s('svg', { class: 'band', role: 'img', 'aria-label': label, preserveAspectRatio: 'none', viewBox: '0 0 240 8' });
  }

  // update draws pairs of a time and a reason, and returns the share of time of each reason.
  update(series, from, to) {
    const buckets = 120, counts = Array.from({ length: buckets }, () => new Map()), all = new Map();
    series.forEach(([time, reason], i) => {
      if (time < from || !reason) return;
      const known = i + 1 < series.length && !gapBefore(series, i + 1) ? Infinity : time + longestSilence;
      const until = Math.min(series[i + 1]?.[0] ?? to, known, to);
      all.set(reason, (all.get(reason) ?? 0) + until - time);
      const width = (to - from) / buckets;
      for (let b = Math.floor((time - from) / width); b < buckets && from + b * width < until; b++) {
        const part = Math.min(until, from + (b + 1) * width) - Math.max(time, from + b * width);
        counts[b].set(reason, (counts[b].get(reason) ?? 0) + part);
      }
    });
    const parts = [];
    counts.forEach((bucket, b) => {
      const [reason] = [...bucket].reduce((best, one) => (one[1] > best[1] ? one : best), [null, 0]);
      if (!reason) return;
      const last = parts.at(-1);
      if (last?.reason === reason && last.end === 2 * b) last.end += 2;
      else parts.push({ reason, start: 2 * b, end: 2 * b + 2 });
    });
    this.element.replaceChildren(...parts.map((p) => s('rect', { x: p.start, width: p.end - p.start, height: 8, class: kind(p.reason) },
      s('title', {}, words(p.reason)))));
    const sum = [...all.values()].reduce((a, b) => a + b, 0);
    return [...all].map(([reason, seconds]) => [reason, seconds / sum]).sort((a, b) => b[1] - a[1]);
  }
}
