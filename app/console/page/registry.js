// Templates, profiles and use cases in force, as rows, and what is refused, as notices.

import { h, name, set, setParts } from './dom.js';
import { count, dash, duration } from './format.js';

const tones = { active: 'flow', deprecated: 'idle', draft: 'careful' };

class Row {
  constructor(columns) {
    this.title = h('th', { scope: 'row' });
    this.cells = columns.map(() => h('span'));
    this.element = h('tr', {}, this.title, ...this.cells.map((cell, i) => h('td', { 'data-label': columns[i] }, cell)));
  }

  // show sets the title and the cells, each a text or a list of parts.
  show(item, ...cells) {
    this.showAs(item.name, item, ...cells);
  }

  showAs(title, item, ...cells) {
    setParts(this.title, name(title));
    set(this.title, 'title', [item.description, `${item.document}:${item.row}`].filter(Boolean).join('\n'));
    cells.forEach((cell, i) => setParts(this.cells[i], ...[cell].flat()));
  }
}

export class TemplateView extends Row {
  constructor() {
    super(['Version', 'Status', 'Model', 'Accelerator', 'Mode', 'Warnings']);
    this.cells[1].classList.add('reason');
  }

  update(item) {
    const { accelerator, model_source: source, deployment_mode: mode } = item.spec;
    const devices = accelerator.type.toLowerCase() === 'cpu' ? 'cpu' : [`${count(accelerator.count)} × `, name(accelerator.type)];
    this.show(item, [name(item.version)], item.status + (item.kept ? ', last good version' : ''), [name(source.uri)], devices, mode, item.warnings.join('; '));
    set(this.cells[1], 'data-kind', item.kept ? 'fault' : tones[item.status] ?? 'idle');
  }
}

export class ProfileView extends Row {
  constructor() {
    super(['Window', 'Priority', 'Max concurrency', 'Tier alias', 'Default', 'Warnings']);
  }

  update({ item, isDefault }) {
    const { scheduling, openai_service_tier_alias: alias } = item.spec;
    const warnings = item.kept ? ['last good version', ...item.warnings] : item.warnings;
    this.show(item, scheduling.completion_window, scheduling.priority, count(scheduling.max_concurrency), alias || dash, isDefault ? 'default' : '', warnings.join('; '));
  }
}

export class UseCaseView extends Row {
  constructor() {
    super(['Set', 'Class', 'Objective', 'Targets', 'Pools', 'State']);
    this.cells[5].classList.add('reason');
  }

  update({ item, useCase }) {
    const { modelName, objective, targetModels: targets } = useCase;
    const weight = targets.reduce((sum, target) => sum + target.weight, 0);
    const share = (target) => (targets.length > 1 ? ` ${Math.round(100 * target.weight / weight)} %` : '');
    const shares = targets.flatMap((target, i) => [i ? ', ' : '', name(target.targetModelName), share(target)]);
    const pools = (item.spec.poolRef ?? []).flatMap((pool, i) => [i ? ', ' : '', name(pool.name)]);
    const waits = item.conditions.filter((condition) => !condition.status);
    const states = [...waits.map((condition) => condition.message), ...(item.kept ? ['last good version'] : []), ...item.warnings];
    const wanted = objective ? Object.values(objective)[0] : dash;
    this.showAs(modelName, item, [name(item.name)], useCase.class, wanted, shares, pools.length ? pools : 'all', states.join('; ') || 'in force');
    set(this.cells[5], 'data-kind', item.kept ? 'fault' : waits.length ? 'careful' : 'flow');
  }
}

// useCasesOf lists the use cases of all sets.
export function useCasesOf(sets) {
  return sets.flatMap((item) => item.spec.useCases.map((useCase) => ({ item, useCase })));
}

export class RefusedView {
  constructor() {
    this.element = h('li', { class: 'notice bad' });
  }

  update(item) {
    const what = item.name ? [`: ${item.kind} `, name(item.name), ...(item.version ? ['@', name(item.version)] : [])] : [];
    setParts(this.element, name(item.document), item.row ? `:${item.row}` : '', ...what, item.path ? ': ' : '', name(item.path), ': ', name(item.text),
      ` (for ${duration(item.age_seconds)}${item.kept ? '; the last good version stays in force' : ''})`);
  }
}

// refusedKey identifies what is refused: its place, and what is wrong.
export function refusedKey(item) {
  return JSON.stringify([item.document, item.row, item.kind, item.name, item.version, item.path, item.text]);
}

// summary counts what there is, and names sources that can't be read.
export function summary(registry) {
  const away = registry.sources.filter((source) => source.error !== null);
  const useCases = useCasesOf(registry.use_cases).length;
  return [`${count(registry.templates.length)} templates, ${count(registry.profiles.length)} profiles, ${count(useCases)} use cases`,
    registry.refused.length ? `, ${count(registry.refused.length)} refused` : '',
    ...away.flatMap((source) => [' · ', name(source.name), ' can\'t be read: ', name(source.error)])];
}
