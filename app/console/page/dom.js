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

// set changes an attribute only if it differs. null removes it.
export function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
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
