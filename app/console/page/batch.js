// A batch, as a row.

import { h, name, names, set, setParts, setText } from './dom.js';
import { count, date, duration, relative } from './format.js';
import { meaning, words } from './reasons.js';

const bad = new Set(['failed', 'expired', 'cancelled']);

// What a status means.
const statuses = {
  validating: 'The input is being checked.',
  in_progress: 'Lines run, or wait for capacity.',
  finalizing: 'All lines have ended, and the result files are being written.',
  completed: 'All lines have ended. Those that failed are in the error file.',
  failed: 'The batch ran no line, because its input is faulty or its models are not served.',
  expired: 'The deadline passed before all lines had ended.',
  cancelling: 'Lines in flight are being ended.',
  cancelled: 'Somebody cancelled the batch.',
};

// showStatus writes the status of a batch in words, with its color and what it means.
export function showStatus(element, batch) {
  const { failed } = batch.request_counts, ended = batch.ended_at !== null, paused = batch.paused && !ended;
  setText(element, paused ? 'paused' : batch.status === 'completed' && failed ? 'completed, with failures' : words(batch.status));
  set(element, 'data-kind', batch.status === 'completed' ? (failed ? 'careful' : 'flow') : bad.has(batch.status) ? 'fault' : paused ? 'idle' : 'users');
  set(element, 'title', paused ? meaning('paused') : statuses[batch.status] ?? '');
}

// causeOf returns a cause of failed lines as text.
export function causeOf(f) {
  return [f.status || (f.code ? '' : 'no answer'), f.code].filter(Boolean).join(' ');
}

const shownFault = 160; // characters of a message in a row

// faultOf returns the first fault of an input as text, the number of the others too; empty: there is none.
export function faultOf(faults) {
  const [first] = faults ?? [];
  if (!first) return '';
  const more = faults.reduce((n, f) => n + f.count, 0) - 1;
  let text = words(first.code) + (first.line ? ` in line ${count(first.line)}` : '');
  if (first.message) text += ': ' + (first.message.length > shownFault ? first.message.slice(0, shownFault) + '…' : first.message);
  return text + (more ? ` (and ${count(more)} more)` : '');
}

// endedOf counts the lines of a batch that ended by themselves: those that it did not run, because it ended first, are apart.
export function endedOf({ completed, failed, total }, notRun) {
  failed -= notRun;
  return { completed, failed, total, notRun, done: completed + failed, share: (n) => (total ? 100 * n / total : 0) };
}

// waitingOf says why no further line is started, without the code before the sentences.
export function waitingOf(text) {
  const [code, sentences] = text.split(/: (.*)/s);
  return sentences ?? (meaning(code) || words(code));
}

// showVerdict writes whether the deadline will be met; an unknown verdict is hidden.
export function showVerdict(element, batch) {
  const [verdict, tone, meaning] = verdicts[batch.verdict] ?? ['', null, ''];
  element.hidden = !verdict;
  setText(element, verdict);
  set(element, 'data-kind', tone);
  set(element, 'title', meaning);
}

// Whether the deadline will be met: the words, the color and what they mean.
export const verdicts = {
  ok: ['ok', 'flow', 'The deadline will be met.'],
  at_risk: ['at risk', 'careful', 'The deadline will be met only if nothing goes worse than expected.'],
  infeasible: ['infeasible', 'harm', 'The deadline will not be met, even with every replica that may be started.'],
};

// kept says whether an ended batch has met its deadline, and the time between its end and that.
export function kept(batch) {
  const left = batch.deadline - batch.ended_at;
  if (batch.status === 'cancelled' || batch.status === 'failed') return 'not judged';
  return left < 0 || batch.status === 'expired' ? `missed by ${duration(Math.max(0, -left))}` : `met, ${duration(left)} before`;
}

export class BatchView {
  constructor(batch) {
    this.owner = h('span', { class: 'muted' });
    this.tenant = h('bdi', {}, batch.tenant);
    this.status = h('span', { class: 'reason' });
    this.done = h('div', { class: 'done' });
    this.failed = h('div', { class: 'failed' });
    this.progress = h('span', { class: 'number' });
    this.waiting = h('span', { class: 'muted' });
    this.fault = h('span', { class: 'muted' });
    this.causes = h('span', { class: 'muted' });
    this.deadline = h('span', { class: 'number' });
    this.verdict = h('span', { class: 'reason', hidden: true });
    this.finish = h('span', { class: 'number' });
    this.element = h('tr', {},
      h('th', { scope: 'row' }, h('a', { href: '#batch/' + encodeURIComponent(batch.id) }, h('code', {}, batch.id)), this.owner),
      h('td', { 'data-label': 'Tenant', class: 'tenant' }, this.tenant), h('td', { 'data-label': 'Status' }, this.status),
      h('td', { 'data-label': 'Progress' }, h('div', { class: 'progress' },
        h('div', { class: 'bar' }, this.done, this.failed), this.progress, this.causes, this.waiting, this.fault)),
      h('td', { 'data-label': 'Deadline' }, h('div', { class: 'due' }, this.deadline, this.verdict)), h('td', { 'data-label': 'Finish' }, this.finish));
  }

  update({ batch, now }) {
    const c = endedOf(batch.request_counts, batch.not_run), ended = batch.ended_at !== null;
    setParts(this.owner, h('span', { class: 'own' }, name(batch.tenant), ' · '), ...(batch.models.length ? names(batch.models) : ['no model']));
    showStatus(this.status, batch);
    this.done.style.width = c.share(c.completed) + '%';
    this.failed.style.width = c.share(c.failed) + '%';
    let text = `${count(c.done)} of ${count(c.total)}`;
    if (c.total) text += ` (${Math.floor(c.share(c.done))} %)`;
    if (c.failed) text += `, ${count(c.failed)} failed`;
    if (c.notRun) text += `, ${count(c.notRun)} not run`;
    if (!ended && batch.rate > 0) text += `, ${batch.rate.toFixed(1)} lines/s`;
    setText(this.progress, text);
    const causes = (batch.failures ?? []).map((f) => `${count(f.count)} × ${causeOf(f)}${f.runner ? ' from ' + f.runner : ''}`);
    setText(this.causes, causes.length ? 'failed: ' + causes.join('; ') : '');
    setText(this.waiting, batch.reason ?? (ended ? '' : batch.waiting ? 'waiting: ' + waitingOf(batch.waiting)
      : batch.in_flight ? `${count(batch.in_flight)} in flight` : ''));
    setText(this.fault, batch.reason ? '' : faultOf(batch.faults));
    set(this.fault, 'title', batch.faults?.[0]?.code ?? null);
    setText(this.deadline, batch.deadline === null ? 'none' : ended ? kept(batch) : relative(batch.deadline, now));
    set(this.deadline, 'title', batch.deadline === null ? '' : date(batch.deadline));
    showVerdict(this.verdict, batch);
    this.updateFinish(batch, now, ended);
  }

  updateFinish(batch, now, ended) {
    const at = ended ? batch.ended_at : batch.predicted_finish;
    let text = 'unknown', late = false;
    if (ended) text = `ended ${relative(at, now)}, after ${duration(at - batch.created_at)}`;
    else if (at !== null) {
      late = batch.deadline !== null && at > batch.deadline;
      text = 'predicted ' + relative(Math.max(at, now), now) + (late ? ', after the deadline' : '');
      const more = batch.predicted_finish_with_one_more ?? null;
      if (more !== null) text += `; ${relative(Math.max(more, now), now)} with one more runner`;
    }
    setText(this.finish, text);
    const band = ended ? null : batch.predicted_band;
    set(this.finish, 'title', at === null ? 'Nothing is predicted, and no line has ended lately.'
      : date(at) + (band ? `; 8 of 10 end between ${date(band[0])} and ${date(band[1])}` : ''));
    set(this.finish, 'data-kind', late ? 'over' : null);
  }
}
