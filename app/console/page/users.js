// The page of users: their batches, by the API's own answers.

import { call, key } from './api.js';
import { verdicts } from './batch.js';
import { h, Keyed, save, setText } from './dom.js';
import { count, date, relative } from './format.js';
import { endOf, Row } from './usersbatch.js';
import { hideUsage, showUsage } from './usersusage.js';

const by = (id) => document.getElementById(id);
const pageSize = 20;
let shown = pageSize, uploaded = null, timer = 0;

const rows = new Keyed(by('rows'), (item) => new Row(item.batch, act));

// act does what a button says, and shows the result at once.
async function act(method, path, download) {
  try {
    const answer = await call(method, path);
    if (download) save(await answer.blob(), download);
    say('');
  } catch (fault) {
    say(fault.message, true);
  }
  await refresh();
}

function say(text, bad = false, items = []) {
  const answer = by('answer');
  answer.replaceChildren();
  if (!text) return;
  answer.append(h('p', { class: bad ? 'notice bad' : 'notice' }, text));
  if (items.length) answer.append(h('ul', {}, ...items.map((item) => h('li', {}, item))));
}

async function refresh() {
  clearTimeout(timer);
  const delay = document.hidden ? 3000 : await update();
  if (delay) timer = setTimeout(refresh, delay);
}

// update shows the batches as they are now. It returns the milliseconds until the next look; 0: a key is needed first.
async function update() {
  try {
    const batches = [];
    let more = true;
    while (more && batches.length < shown) {
      const after = batches.length ? '&after=' + batches.at(-1).id : '';
      const limit = Math.min(100, shown - batches.length);
      const page = await (await call('GET', `v1/batches?limit=${limit}${after}`)).json();
      batches.push(...page.data);
      more = page.has_more && page.data.length > 0;
    }
    show(batches, more);
    await showUsage(batches.filter(endOf).length);
    return batches.every(endOf) ? 10000 : 3000;
  } catch (fault) {
    if (fault.status === 401 || fault.status === 403) return signIn(key.value ? fault.message : '');
    setText(by('state'), fault.status === 0 ? 'not reachable' : fault.message);
    return 3000;
  }
}

function show(batches, more) {
  by('sign-in').hidden = true;
  by('submit').hidden = by('batches').hidden = false;
  const now = Date.now() / 1000;
  rows.update(batches.map((batch) => ({ batch, now })), (item) => item.batch.id);
  by('none').hidden = batches.length > 0;
  by('more').hidden = !more;
  const sum = (of) => batches.reduce((total, b) => total + of(b), 0);
  setText(by('usage'), batches.length ? `${more ? 'the latest ' : ''}${count(batches.length)}: ` +
    `${count(sum((b) => b.request_counts.total))} lines, ${count(sum((b) => b.usage?.input_tokens ?? 0))} tokens in, ` +
    `${count(sum((b) => b.usage?.output_tokens ?? 0))} out` : '');
  setText(by('state'), 'live');
}

function signIn(fault) {
  clearTimeout(timer);
  key.value = '';
  by('submit').hidden = by('batches').hidden = true;
  hideUsage();
  by('sign-in').hidden = false;
  by('sign-in-fault').hidden = !fault;
  setText(by('sign-in-fault'), fault);
  setText(by('state'), 'needs a key');
  by('key').focus();
  return 0;
}

// input returns the id of the chosen file, which is uploaded once.
async function input() {
  const file = by('file').files[0];
  if (!file) throw new Error('Choose a file first.');
  if (uploaded?.file === file) return uploaded.id;
  const form = new FormData();
  form.append('purpose', 'batch');
  form.append('file', file);
  say(`Uploading ${file.name} …`);
  uploaded = { file, id: (await (await call('POST', 'v1/files', form)).json()).id };
  return uploaded.id;
}

async function create(query) {
  const id = await input();
  const first = (await by('file').files[0].slice(0, 1 << 20).text()).split('\n', 1)[0];
  let endpoint = '/v1/chat/completions';
  try { endpoint = JSON.parse(first).url ?? endpoint; } catch { /* the API says what is wrong */ }
  const body = { input_file_id: id, endpoint, completion_window: by('window').value };
  return (await call('POST', 'v1/batches' + query, body)).json();
}

function predicted(p) {
  const now = Date.now() / 1000;
  let text = `${count(p.lines ?? null)} lines. ` + (verdicts[p.verdict]?.[2] ?? 'The end is predicted without a deadline.');
  if (p.predicted_finish) text += ` Done ${relative(p.predicted_finish, now)}, ${date(p.predicted_finish)}`;
  if (p.predicted_band) text += `, 8 in 10 between ${date(p.predicted_band[0])} and ${date(p.predicted_band[1])}`;
  if (p.predicted_finish) text += '.';
  return text + (p.verdict === 'infeasible' && p.nearest ? ` The nearest that can be met is ${date(p.nearest.deadline)}.` : '');
}

function faults(p) {
  const list = p.errors?.data ?? [];
  if (!list.length) return false;
  say('The file has errors.', true, list.slice(0, 10).map((e) => (e.line ? `line ${e.line}: ` : '') + e.message));
  return true;
}

async function working(work) {
  const buttons = [...by('submit').querySelectorAll('button')];
  for (const button of buttons) button.disabled = true;
  try {
    await work();
  } catch (fault) {
    say(fault.message, true);
    if (fault.status === 401) signIn(fault.message);
  }
  for (const button of buttons) button.disabled = false;
}

by('preview').addEventListener('click', () => working(async () => {
  const p = await create('?dry_run=true');
  if (!faults(p)) say(p.verdict || p.predicted_finish ? predicted(p) : `${count(p.lines ?? null)} lines. ${p.reason ?? 'Nothing is predicted.'}`);
}));

by('submit').addEventListener('submit', (event) => {
  event.preventDefault();
  working(async () => {
    const batch = await create('');
    uploaded = null;
    by('file').value = '';
    say(`Submitted as ${batch.id}.`);
    await refresh();
  });
});

by('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  key.value = by('key').value.trim();
  by('key').value = '';
  refresh();
});

by('more').addEventListener('click', () => { shown += pageSize; refresh(); });

refresh();
