// The page of one batch: its history, its lines by state, why lines failed, and the last lines that ended.

import { ask, get, key } from './api.js';
import { causeOf, endedOf, kept, showStatus, showVerdict, waitingOf } from './batch.js';
import { Keyed, h, name, names, save, set, setFigure, setParts, setText } from './dom.js';
import { count, dash, date, duration, relative } from './format.js';
import { words } from './reasons.js';

const shownLines = 20;

// table returns a table with a caption and the body for its rows.
function table(caption, columns) {
  const body = h('tbody');
  return [h('table', {}, h('caption', {}, caption),
    h('thead', {}, h('tr', {}, ...columns.map((label) => h('th', { scope: 'col' }, label)))), body), body];
}

// Row is a row of texts or lists of parts; the first one is its heading.
class Row {
  constructor(columns) {
    this.cells = columns.map((label, i) => (i ? h('td', { 'data-label': label }) : h('th', { scope: 'row' })));
    this.element = h('tr', {}, ...this.cells);
  }

  update({ cells }) {
    cells.forEach((cell, i) => setParts(this.cells[i], ...[cell].flat()));
  }
}

// Rows is a table whose rows are lists of texts.
class Rows {
  constructor(caption, ...columns) {
    const [element, body] = table(caption, columns);
    this.element = element;
    this.rows = new Keyed(body, () => new Row(columns));
  }

  // show shows rows {key, cells}. The table is hidden without any.
  show(rows) {
    this.element.hidden = rows.length === 0;
    this.rows.update(rows, ({ key: id }) => id);
  }
}

const actions = [
  ['pause', 'Pause', (b) => !b.paused && ['validating', 'in_progress'].includes(b.status), ''],
  ['resume', 'Resume', (b) => b.paused && b.ended_at === null, ''],
  ['retry', 'Retry failed lines', (b) => b.ended_at !== null && b.request_counts.failed > 0,
    'This makes a new batch of the lines in the error file.'],
  ['cancel', 'Cancel', (b) => b.ended_at === null && b.status !== 'cancelling',
    'Lines in flight end at once. Lines that have ended stay in the results. This can’t be undone.'],
];

export class BatchPage {
  constructor(element, id) {
    this.id = id;
    this.lines = [];
    this.next = '';
    this.reading = null;
    this.element = element;
    this.title = h('h2', { id: 'batch-title', tabindex: '-1' }, 'Batch ', h('code', {}, id));
    this.owner = h('p', { class: 'muted' });
    this.status = h('span', { class: 'reason' });
    this.waiting = h('p', { class: 'sentence' });
    this.message = h('p', { class: 'message', role: 'status' });
    this.buttons = actions.map(([verb, label, , warning]) => {
      const button = h('button', { type: 'button', hidden: '' }, label);
      button.addEventListener('click', () => this.confirm(verb, label, warning));
      return button;
    });
    this.question = h('p');
    this.yes = h('button', { type: 'button' });
    this.no = h('button', { type: 'button' }, 'Don’t');
    this.dialog = h('dialog', { 'aria-label': 'Confirm' }, this.question, h('div', { class: 'actions' }, this.yes, this.no));
    this.no.addEventListener('click', () => this.dialog.close());
    this.yes.addEventListener('click', () => {
      this.dialog.close();
      this.act(this.verb);
    });
    this.buildKey();
    this.buildPriority();
    this.downloads = h('span', { class: 'actions' });
    this.figures = h('dl', { class: 'figures' });
    this.values = new Map();
    this.states = new Rows('Lines by state', 'State', 'Lines', 'Share');
    this.causes = new Rows('Causes of failure', 'Cause', 'Lines', 'Runner', 'One of the answers');
    this.faults = new Rows('Faults of the input', 'Fault', 'Count', 'First line', 'Message');
    this.history = new Rows('History', 'What', 'When', 'By');
    this.ended = new Rows('Last lines that ended', 'custom_id', 'Line', 'Result', 'Requests', 'Output tokens');
    element.replaceChildren(h('p', {}, h('a', { href: '#' }, 'All pools and batches')),
      h('div', { class: 'head' }, this.title, h('span', { class: 'spacer' }), this.status), this.owner, this.waiting,
      h('div', { class: 'actions' }, ...this.buttons.slice(0, actions.length), this.downloads), this.keyForm, this.priorityForm, this.message, this.dialog, this.figures,
      ...[this.states, this.causes, this.faults, this.history, this.ended].map((rows) => rows.element));
    for (const rows of [this.states, this.causes, this.faults, this.history, this.ended]) rows.show([]);
  }

  buildKey() {
    const input = h('input', { type: 'password', autocomplete: 'off', id: 'key', spellcheck: 'false' });
    const use = h('button', { type: 'submit' }, 'Use');
    this.keyForm = h('form', { class: 'actions', hidden: '' }, h('label', { for: 'key' }, 'API key, for samples, results and changes'), input, use);
    this.keyForm.addEventListener('submit', (e) => {
      e.preventDefault();
      key.value = input.value.trim();
      input.value = '';
      this.readObject();
    });
  }

  buildPriority() {
    this.priority = h('input', { type: 'number', min: '-100', max: '100', step: '1', id: 'priority', required: '' });
    const set = h('button', { type: 'submit' }, 'Set');
    this.priorityForm = h('form', { class: 'actions', hidden: '' }, h('label', { for: 'priority' }, 'Priority'), this.priority, set);
    this.priorityForm.addEventListener('submit', (e) => {
      e.preventDefault();
      this.act('', { tidefill: { priority: this.priority.valueAsNumber } });
    });
    this.buttons.push(set);
  }

  confirm(verb, label, warning) {
    if (!warning) return this.act(verb);
    this.verb = verb;
    setText(this.question, warning);
    setText(this.yes, label);
    this.dialog.showModal();
  }

  // act has the API do something to the batch, or change it if there is no verb.
  async act(verb, body) {
    for (const button of this.buttons) button.disabled = true;
    try {
      const answer = await (await ask('POST', `batches/${encodeURIComponent(this.id)}${verb && '/' + verb}`, this.batch.tenant, body)).json();
      if (verb === 'retry') setParts(this.message, 'The new batch is ', h('a', { href: '#batch/' + answer.id }, h('code', {}, answer.id)), '.');
      else setText(this.message, '');
      await this.refresh();
    } catch (error) {
      setText(this.message, error.message);
    }
    for (const button of this.buttons) button.disabled = false;
  }

  // readObject reads what only users of the batch may see, if this page may.
  async readObject() {
    const { batch } = this;
    this.object = null;
    if (batch.refused !== null) setText(this.message, batch.refused);
    else if (key.value || !batch.needs_key) {
      try {
        this.object = await (await ask('GET', 'batches/' + encodeURIComponent(this.id), batch.tenant)).json();
        if (this.keyRefused) setText(this.message, '');
        this.keyRefused = false;
      } catch (error) {
        if (error.status === 401 || error.status === 403) key.value = '';
        this.keyRefused = true;
        setText(this.message, error.message);
      }
    }
    this.show();
  }

  async refresh() {
    const path = 'admin/batches/' + encodeURIComponent(this.id);
    const before = this.batch;
    try {
      this.batch = await get(path);
    } catch (error) {
      if (error.status !== 404) throw error;
      setText(this.waiting, error.message);
      return;
    }
    const of = JSON.stringify([this.batch.status, this.batch.request_counts.failed]);
    if (!before || this.reading !== of) {
      this.reading = of;
      await this.readObject();
    } else this.show();
    const { data, next } = await get(`${path}/lines?limit=${shownLines}&after=${encodeURIComponent(this.next)}`);
    this.next = next;
    this.lines = [...data.reverse(), ...this.lines].slice(0, shownLines);
    this.ended.show(this.lines.map((line) => ({ key: line.line, cells: [
      line.custom_id ? name(line.custom_id) : dash, count(line.line),
      (line.failed ? 'failed: ' : '') + causeOf(line), count(line.attempts), count(line.output_tokens)] })));
  }

  show() {
    const b = this.batch, c = endedOf(b.request_counts, b.not_run), { time: now } = b;
    setParts(this.owner, name(b.tenant), ' · ', ...(b.models.length ? names(b.models) : ['no model']), ` · ${b.endpoint}`,
      ...(b.retry_of ? [' · retry of ', h('a', { href: '#batch/' + b.retry_of }, h('code', {}, b.retry_of))] : []));
    showStatus(this.status, b);
    setText(this.waiting, b.reason ?? (b.waiting && b.ended_at === null ? waitingOf(b.waiting) : ''));
    actions.forEach(([, , applies], i) => { this.buttons[i].hidden = b.refused !== null || !this.object || !applies(b); });
    this.priorityForm.hidden = b.refused !== null || !this.object || b.ended_at !== null;
    if (!this.priority.value) this.priority.value = b.priority;
    this.keyForm.hidden = b.refused !== null || !b.needs_key || this.object !== null;
    this.showFigures(b, now);
    const rest = Math.max(0, c.total - c.done);
    const states = [['completed', c.completed], ['failed', c.failed], ...(b.ended_at === null
      ? [['in flight', b.in_flight], ['waiting to retry', b.retrying], ['not started', Math.max(0, rest - b.in_flight - b.retrying)]]
      : [['not run', rest]])];
    this.states.show(states.map(([state, n]) => ({ key: state, cells: [state, count(n), c.total ? `${c.share(n).toFixed(1)} %` : dash] })));
    const failures = this.object?.tidefill.failures ?? b.failures;
    this.causes.show(failures.map((f, i) => ({ key: i, cells: [causeOf(f), count(f.count), f.runner ? name(f.runner) : 'unknown', f.sample ? name(f.sample) : 'shown with a key of the tenant'] })));
    const messages = this.object?.errors?.data ?? [];
    this.faults.show(b.faults.map((f) => ({ key: f.code, cells: [words(f.code), count(f.count), f.line || dash,
      name(messages.find((m) => m.code === f.code)?.message || f.message || 'shown with a key of the tenant')] })));
    this.history.show(b.history.map((e, i) => ({ key: i, cells: [words(e.what), `${date(e.at)}, ${relative(e.at, now)}`, e.by ? h('code', {}, e.by) : dash] })));
    this.showDownloads();
  }

  showFigures(b, now) {
    const ended = b.ended_at !== null, c = endedOf(b.request_counts, b.not_run), at = ended ? b.ended_at : b.predicted_finish;
    const figures = [
      ['Lines ended', `${count(c.done)} of ${count(c.total)}`,
        [[c.failed, 'failed'], [c.notRun, 'not run']].filter(([n]) => n).map(([n, what]) => `${count(n)} ${what}`).join(', ')],
      ['Rate', ended ? dash : `${b.rate.toFixed(1)} lines/s`, b.attempts ? `${count(b.attempts)} requests so far` : ''],
      [ended ? 'Ended' : 'Predicted end', at === null ? 'unknown' : relative(ended ? at : Math.max(at, now), now),
        ended ? `after ${duration(at - b.created_at)}` : at === null ? 'nothing is predicted' : date(at)],
      ['Eight of ten end', !ended && b.predicted_band ? `${relative(Math.max(b.predicted_band[0], now), now)}` : dash, !ended && b.predicted_band ? `to ${relative(Math.max(b.predicted_band[1], now), now)}` : ''],
      ['Deadline', b.deadline === null ? 'none' : ended ? kept(b) : relative(b.deadline, now), b.deadline === null ? '' : date(b.deadline)],
      ['Priority', String(b.priority), `window ${b.completion_window}`],
    ];
    figures.forEach(([label, value, note], i) => {
      let shown = this.values.get(i);
      if (!shown) {
        shown = [h('dt'), h('dd', { class: 'number' }), h('dd', { class: 'muted' })];
        this.values.set(i, shown);
        this.figures.append(h('div', {}, ...shown));
      }
      [setText, setFigure, setText].forEach((write, j) => write(shown[j], [label, value, note][j]));
    });
    if (!this.verdict) {
      this.verdict = h('dd', { class: 'reason' });
      this.values.get(4)[2].after(this.verdict);
    }
    showVerdict(this.verdict, b);
  }

  showDownloads() {
    const outputs = (this.object?.tidefill.outputs ?? []).flatMap((o) => [['results', o.output_file_id], ['errors', o.error_file_id]]).filter(([, id]) => id);
    const ids = outputs.map(([, id]) => id).join();
    if (this.downloads.dataset.ids === ids) return;
    this.downloads.dataset.ids = ids;
    this.downloads.replaceChildren(...outputs.map(([what, id]) => {
      const button = h('button', { type: 'button' }, `Download ${what}`);
      button.addEventListener('click', () => this.download(id));
      return button;
    }));
  }

  async download(id) {
    try {
      save(await (await ask('GET', `files/${id}/content`, this.batch.tenant)).blob(), id + '.jsonl');
    } catch (error) {
      setText(this.message, error.message);
    }
  }
}
