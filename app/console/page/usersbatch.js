// A batch of a user, as a row with what can be done to it.

import { causeOf, endedOf, showStatus, waitingOf } from './batch.js';
import { h, name, set, setParts, setText } from './dom.js';
import { count, dash, date, duration, relative } from './format.js';

const ends = ['completed_at', 'failed_at', 'expired_at', 'cancelled_at'];

// endOf returns when a batch has ended; null: it has not.
export function endOf(batch) {
  return ends.map((k) => batch[k]).find((at) => at) ?? null;
}

export class Row {
  // act(method, path, file) does what a button says; file is the name of what is downloaded.
  constructor(batch, act) {
    this.status = h('span', { class: 'reason' });
    this.detail = h('span', { class: 'muted' });
    this.done = h('div', { class: 'done' });
    this.failed = h('div', { class: 'failed' });
    this.progress = h('span', { class: 'number' });
    this.end = h('span', { class: 'number' });
    this.tokens = h('span', { class: 'number' });
    this.note = h('span', { class: 'muted' });
    this.actions = h('div', { class: 'actions' });
    const button = (text, does) => {
      const b = h('button', { type: 'button', 'aria-label': `${text}: ${batch.id}`, hidden: '' }, text);
      b.addEventListener('click', async () => { b.disabled = true; await does(); b.disabled = false; });
      this.actions.append(b);
      return b;
    };
    const path = 'v1/batches/' + batch.id;
    const download = (kind) => () => act('GET', `v1/files/${this.batch[kind + '_file_id']}/content`, `${batch.id}_${kind}.jsonl`);
    const sure = (question, does) => () => (window.confirm(question) ? does() : null);
    this.buttons = {
      output: button('Results', download('output')),
      error: button('Failed lines', download('error')),
      pause: button('Pause', () => act('POST', path + '/pause')),
      resume: button('Resume', () => act('POST', path + '/resume')),
      retry: button('Retry failed', () => act('POST', path + '/retry')),
      cancel: button('Cancel', sure('Cancel this batch? Finished lines keep their results.', () => act('POST', path + '/cancel'))),
      remove: button('Delete', sure('Delete this batch with its results?', () => act('DELETE', path))),
    };
    this.element = h('tr', {},
      h('th', { scope: 'row' }, h('code', {}, batch.id), this.note),
      h('td', { 'data-label': 'Status' }, h('div', {}, this.status, ' ', this.detail)),
      h('td', { 'data-label': 'Progress' }, h('div', { class: 'progress' }, h('div', { class: 'bar' }, this.done, this.failed), this.progress)),
      h('td', { 'data-label': 'End' }, this.end),
      h('td', { 'data-label': 'Tokens' }, this.tokens),
      h('td', { 'data-label': 'Actions' }, this.actions));
  }

  update({ batch, now }) {
    this.batch = batch;
    const t = batch.tidefill, c = endedOf(batch.request_counts, t.not_run);
    const ended = endOf(batch);
    const runs = batch.status === 'validating' || batch.status === 'in_progress';
    showStatus(this.status, { ...batch, paused: t.paused, ended_at: ended });
    const causes = (t.failures ?? []).map((f) => `${count(f.count)} × ${causeOf(f)}`);
    const faults = (batch.errors?.data ?? []).slice(0, 3).map((e) => (e.line ? `line ${e.line}: ` : '') + e.message);
    setText(this.detail, [...faults, t.reason, causes.length ? 'failed: ' + causes.join('; ') : null, ended || t.paused || !t.waiting ? null : waitingOf(t.waiting)].filter(Boolean).join(' '));
    const project = Object.entries(batch.metadata ?? {}).map(([k, v]) => `${k}: ${v}`).join(', ');
    setParts(this.note, ` ${relative(batch.created_at, now)} · `, name(batch.model ?? 'no model'), ...(project ? [' · ', name(project)] : []));
    this.done.style.width = c.share(c.completed) + '%';
    this.failed.style.width = c.share(c.failed) + '%';
    let text = `${count(c.done)} of ${count(c.total)}`;
    if (c.failed) text += `, ${count(c.failed)} failed`;
    if (c.notRun) text += `, ${count(c.notRun)} not run`;
    if (t.rate > 0 && !ended) text += `, ${t.rate.toFixed(1)} a second`;
    setText(this.progress, text);
    const eta = t.predicted_finish ?? t.eta ?? null;
    setText(this.end, ended ? `${relative(ended, now)}, after ${duration(ended - batch.created_at)}`
      : eta ? relative(Math.max(eta, now), now) + (t.verdict === 'infeasible' ? ', too late' : t.verdict === 'at_risk' ? ', at risk' : '') : 'unknown');
    set(this.end, 'title', ended || eta ? date(ended ?? eta) + (t.predicted_band && !ended ? `; 8 in 10 end between ${date(t.predicted_band[0])} and ${date(t.predicted_band[1])}` : '') : null);
    setText(this.tokens, batch.usage?.total_tokens ? `${count(batch.usage.input_tokens)} in, ${count(batch.usage.output_tokens)} out` : dash);
    const b = this.buttons;
    b.output.hidden = !batch.output_file_id;
    b.error.hidden = !batch.error_file_id;
    b.pause.hidden = !runs || t.paused;
    b.resume.hidden = !!ended || !t.paused;
    b.retry.hidden = !ended || !batch.request_counts.failed;
    b.cancel.hidden = !!ended || batch.status === 'cancelling';
    b.remove.hidden = !ended;
  }
}
