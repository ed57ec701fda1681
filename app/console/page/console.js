// The console: asks the daemon every two seconds, and shows what it answers.

import { Keyed, name, set, setParts, setText } from './dom.js';
import { get } from './api.js';
import { BatchView } from './batch.js';
import { BatchPage } from './batchpage.js';
import * as find from './find.js';
import './felt.js';
import './used.js';
import { clock, duration } from './format.js';
import { OverviewRow } from './overview.js';
import { Notice, PoolView } from './pool.js';
import { Meanings, learn, words } from './reasons.js';
import { ProfileView, RefusedView, TemplateView, UseCaseView, refusedKey, summary, useCasesOf } from './registry.js';
import { ScalingView } from './scaling.js';

const interval = 2000; // milliseconds
const byId = (id) => document.getElementById(id);

const overview = new Keyed(byId('overview-rows'), (item) => new OverviewRow(item));
const pools = new Keyed(byId('pools'), () => new PoolView());
const scaling = new Keyed(byId('scaling-rows'), (item) => new ScalingView(item));
const templates = new Keyed(byId('template-rows'), () => new TemplateView());
const profiles = new Keyed(byId('profile-rows'), () => new ProfileView());
const useCases = new Keyed(byId('use-case-rows'), () => new UseCaseView());
const refused = new Keyed(byId('refused'), () => new RefusedView());
const batches = new Keyed(byId('batch-rows'), ({ batch }) => new BatchView(batch));
const notices = new Keyed(byId('notices'), (notice) => new Notice(notice.kind));
const meanings = new Meanings();
byId('overview').append(meanings.element);
let isScaled = false; // some pool is
let reached = null; // when the daemon answered last, in seconds by the clock of this machine

let wake = () => {}; // refreshes now
const showMore = find.follow(() => wake());
let selected = null; // the name of a pool
let toFocus = false; // the selected pool, as soon as it is shown
let page = null; // of one batch; null: all are shown

// follow shows what the part of the URL after # names: one batch, or all of them and the pools, one of which may be selected.
function follow() {
  const [, what, id] = location.hash.match(/^#(batch|pool)\/(.+)$/) ?? [];
  if (what === 'pool') {
    selected = decodeURIComponent(id);
    toFocus = true;
  } else if (!what) selected = null;
  show(what === 'batch' ? id : null);
}

function show(id) {
  if ((page?.id ?? null) === (id ? decodeURIComponent(id) : null)) return;
  const back = page?.id;
  page = id ? new BatchPage(byId('batch'), decodeURIComponent(id)) : null;
  byId('batch').hidden = !page;
  document.body.classList.toggle('one', Boolean(page));
  document.title = page ? `${page.id} · Tidefill` : 'Tidefill';
  if (page) page.title.focus();
  else if (back) [...document.querySelectorAll('#batch-rows a')].find((a) => a.textContent === back)?.focus();
  window.scrollTo(0, 0);
}

async function readHistory(pool) {
  const view = pools.views.get(pool.name);
  if (!view) return;
  const path = `admin/pools/${encodeURIComponent(pool.name)}/decisions?${view.history.query()}`;
  view.history.add((await get(path)).data);
}

async function refresh() {
  const state = await get('admin/pools');
  reached = Date.now() / 1000;
  learn(state.reasons);
  await (page ? page.refresh() : refreshAll(state));
  setParts(byId('node'), name(state.node), ` · ${state.version}`);
  setText(byId('clock'), clock(state.time, true));
  showState(state.waiting.length ? 'not ready' : 'live', state.waiting.length ? 'careful' : 'flow');
  notices.update(noticesOf(state), (notice) => notice.key);
}

async function refreshAll(state) {
  const [, scaled, registry] = await Promise.all([showBatches(state.time), get('admin/scaling'), get('admin/registry')]);
  await showPools(state.data);
  isScaled = scaled.data.length > 0;
  showScaling(scaled);
  showRegistry(registry);
}

// showPools shows a single pool with its details. Several have a row each, and the selected one its details.
async function showPools(all) {
  const single = all.length === 1, shown = single ? all : all.filter((pool) => pool.name === selected);
  byId('overview').hidden = all.length < 2;
  overview.update(all.map((pool) => ({ pool, selected: pool.name === selected })), ({ pool }) => pool.name);
  meanings.update(all.map((pool) => pool.decision.reason));
  pools.update(shown, (pool) => pool.name);
  await Promise.all(shown.map(readHistory));
  pools.update(shown, (pool) => pool.name);
  if (toFocus && shown.length) {
    toFocus = false;
    pools.views.get(shown[0].name).title.focus();
  }
}

// showBatches shows the batches that are asked for, or why it can't.
async function showBatches(now) {
  const asked = find.query();
  let work;
  try {
    work = await get('admin/batches?' + asked);
  } catch (error) {
    if (error.status !== 400) throw error;
    setText(byId('find-message'), error.message);
    return;
  }
  if (asked !== find.query()) return; // it is out of date
  setText(byId('find-message'), '');
  batches.update(work.data.map((batch) => ({ batch, now })), ({ batch }) => batch.id);
  byId('batch-table').classList.toggle('tenants', new Set(work.data.map((batch) => batch.tenant)).size > 1);
  showMore(work.next ?? null);
  byId('batches').hidden = false;
  byId('batch-table').hidden = work.data.length === 0;
  byId('no-batches').hidden = work.data.length > 0;
  setText(byId('no-batches'), asked ? `None of the batches ${work.next ? 'that were searched' : ''} is like this.`.replace('  ', ' ') : 'No batch has been submitted.');
  const shown = work.data.filter((batch) => batch.ended_at === null).length;
  setText(byId('batch-total'), `${work.total.toLocaleString('en')} not ended` +
    (!asked && work.total > shown ? `, the ${shown} with the earliest deadlines are shown` : ''));
}

function showScaling(scaled) {
  scaling.update(scaled.data.map((pool) => ({ pool, now: scaled.time })), ({ pool }) => pool.name);
  byId('scaling').hidden = scaled.data.length === 0 && scaled.unknown === null;
  setText(byId('scaling-decided'), scaled.unknown ?? (scaled.decided === null ? '' : `decided ${duration(scaled.time - scaled.decided)} ago`));
}

function showRegistry(registry) {
  templates.update(registry.templates, (item) => JSON.stringify([item.name, item.version]));
  profiles.update(registry.profiles.map((item) => ({ item, isDefault: item.name === registry.default_profile })), ({ item }) => item.name);
  useCases.update(useCasesOf(registry.use_cases), ({ item, useCase }) => JSON.stringify([item.name, useCase.modelName]));
  refused.update(registry.refused, refusedKey);
  byId('templates').hidden = registry.templates.length === 0;
  byId('profiles').hidden = registry.profiles.length === 0;
  byId('use-cases').hidden = registry.use_cases.length === 0;
  byId('registry').hidden = registry.templates.length + registry.profiles.length + registry.use_cases.length + registry.refused.length === 0;
  setParts(byId('registry-summary'), ...summary(registry));
}

function noticesOf(state) {
  const all = state.waiting.map((text) => ({ key: 'waiting ' + text, kind: 'bad', text: 'Not ready: ' + text + '.' }));
  if (state.stands_by) {
    all.push({ key: 'stands by', kind: 'warn', text: 'This process stands by: another one leads the pools. Their figures are as that one has published them.' });
  } else if (state.data.length === 0 && !state.waiting.length && !state.problems.length && !isScaled && !page) {
    all.push({ key: 'no pool', kind: 'warn', text: 'No pool yet: no upstream has listed its models. The log says what they answer.' });
  }
  for (const text of state.problems) {
    all.push({ key: 'problem ' + text, kind: 'warn', text: /\.$/.test(text) ? text : text + '.' });
  }
  for (const d of state.degraded) {
    all.push({ key: `degraded ${d.target} ${d.source}`, kind: 'warn',
      title: d.state,
      parts: [`${d.source} of `, name(d.target), `: ${words(d.state)} for ${duration(state.time - d.since)}. ${d.meaning}`] });
  }
  return all;
}

function showState(text, kind) {
  setText(byId('state'), text);
  set(byId('state'), 'data-kind', kind);
  document.body.classList.toggle('stale', kind === 'fault');
}

function showFailure(error) {
  console.debug(error);
  showState('not reachable', 'fault');
  const text = reached === null ? 'The daemon does not answer. This page tries again every two seconds.'
    : `The daemon has not answered since ${clock(reached, true)}. All figures are from then. This page tries again every two seconds.`;
  notices.update([{ key: 'away', kind: 'bad', text }], (notice) => notice.key);
}

// run refreshes the page while somebody sees it, and at once when somebody looks again.
async function run() {
  document.addEventListener('visibilitychange', () => wake());
  window.addEventListener('hashchange', () => {
    follow();
    wake();
  });
  follow();
  for (;;) {
    if (!document.hidden) await refresh().catch(showFailure);
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, interval);
    });
  }
}

run();
