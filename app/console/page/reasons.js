// The reasons that limit batch work: what they mean, as the daemon words them, and their colors.
// The reasons are constants of dispatch/plan and of flow-control policies. List a new one in kinds, unless it is a
// fault.

import { h, setParts } from './dom.js';

const kinds = {
  flowing: 'flow', none: 'flow', nothing_ready: 'idle', loading: 'idle', paused: 'idle', draining: 'idle', closed: 'idle', queued: 'idle',
  token_time: 'users', queue: 'users', queue_full: 'users', kv_full: 'users', first_token: 'users', late_lines: 'users', prompt_limit: 'users', kv: 'users', slots: 'users', packed: 'users',
  brake: 'harm', late: 'harm',
  watching: 'careful', growing: 'flow', starting: 'careful', aging: 'careful', stale: 'careful', shed: 'careful', retry_after: 'careful',
  waiting_to_retry: 'careful',
  at_limit: 'limit', budget: 'limit', money: 'limit', runner_limit: 'limit', pool_limit: 'limit', max_concurrency: 'limit',
};

// Reasons and statuses whose words are not those of their names.
const named = {
  flowing: 'lines flow', none: 'nothing', nothing_ready: 'nothing to do', at_limit: 'allowance used', runner_limit: 'configured limit', pool_limit: 'configured limit',
  runners_down: 'no runner answers', kv_full: 'engine memory full', kv: 'engine memory', slots: 'engine places', brake: 'users suffer', late: 'users late',
  queue: 'users wait', token_time: 'time per token', first_token: 'first tokens', prompt_limit: 'prompts to compute', shed: 'runner refuses', retry_after: 'runner asked for a pause',
  aging: 'no recent reading', stale: 'no reading', max_concurrency: 'limit of the batch',
  invalid_json_line: 'invalid JSON', no_page: 'page missing',
  implausible_ttft: 'implausible objective of first tokens',
};

// words returns a reason or a status for people.
export function words(name) {
  return named[name] ?? name.replaceAll('_', ' ');
}

let explained = {};

// learn takes over the explanations of the daemon.
export function learn(reasons) {
  explained = reasons;
}

// kind returns the class of a reason; faults are those that no table knows.
export function kind(reason) {
  return kinds[reason] ?? 'fault';
}

export function meaning(reason) {
  return explained[reason]?.meaning ?? '';
}

export function remedy(reason) {
  return (explained[reason]?.remedy ?? '').replaceAll('`', '');
}

const allReasons = 'https://github.com/tidefill/tidefill/blob/main/docs/metrics.md#why-is-my-batch-waiting';

// Meanings says what reasons mean to whoever opens it: a tooltip needs a mouse.
export class Meanings {
  constructor() {
    this.list = h('dl');
    this.element = h('details', { class: 'meanings' }, h('summary', {}, 'What these reasons mean'), this.list,
      h('a', { href: allReasons, rel: 'noreferrer' }, 'All reasons, and what to do'));
  }

  // update shows those of some reasons, each once.
  update(reasons) {
    const known = [...new Set(reasons)].filter(meaning);
    this.element.hidden = known.length === 0;
    setParts(this.list, ...known.flatMap((reason) => [h('dt', { title: reason }, words(reason)), h('dd', {}, `${meaning(reason)} ${remedy(reason)}`)]));
  }
}
