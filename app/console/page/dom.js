// Builds and updates elements. All texts become text nodes, so that no name is read as markup.

const svgSpace = 'http://www.w3.org/2000/svg';

// h returns an element with attributes and children, which are elements or texts.
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// s is h for SVG.
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgSpace, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// setText changes a text only if it differs, so that a selection stays.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// setFigure is setText for the figure of a tile. One that is unknown has no size to show.
export function setFigure(element, text) {
  setText(element, text);
  set(element, 'data-unknown', text === 'unknown' ? '' : null);
}

// name returns a name from outside as an element of its own: characters in it that change the direction of text, such as
// U+202E, must not reverse what stands beside it.
export function name(text) {
  return h('bdi', {}, text);
}

// names returns names from outside, with commas between them.
export function names(list) {
  return list.flatMap((one, i) => (i ? [', ', name(one)] : [name(one)]));
}

// setParts is setText for a text that has names in it.
export function setParts(element, ...parts) {
  if (element.textContent !== parts.map((part) => part.textContent ?? part).join('')) element.replaceChildren(...parts);
}

// set changes an attribute only if it differs. null removes it.
export function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// save has the browser keep a blob as a file. A link to the file could not send a key.
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// Keyed shows a list of items below a parent, one view for each key, in the order of the items.
export class Keyed {
  constructor(parent, create) {
    this.parent = parent;
    this.create = create;
    this.views = new Map();
  }

  update(items, keyOf) {
    const seen = new Set();
    let next = this.parent.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      seen.add(key);
      let view = this.views.get(key);
      if (!view) this.views.set(key, view = this.create(item));
      if (view.element === next) next = next.nextElementSibling;
      else this.parent.insertBefore(view.element, next);
      view.update(item);
    }
    for (const [key, view] of this.views) {
      if (seen.has(key)) continue;
      view.element.remove();
      this.views.delete(key);
    }
  }
}
