// The search for batches: what is asked for, which the URL has too, and the pages that were left.

const form = document.getElementById('find');
const left = []; // the positions of the pages before this one
let after = '';

for (const [name, value] of new URLSearchParams(location.search)) {
  const field = form.elements.namedItem(name);
  if (field) field.value = value;
}

// remember writes what is asked for into the URL, which finds the same when it is opened again.
function remember() {
  const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
  history.replaceState(null, '', (asked.size ? `?${asked}` : location.pathname) + location.hash);
}

// query returns the parameters of GET /admin/batches.
export function query() {
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const [key, ...rest] = value.trim().split('=');
    if (name === 'metadata' && key) asked.set(`metadata[${key}]`, rest.join('='));
    else if (name !== 'metadata' && value.trim()) asked.set(name, value.trim());
  }
  if (after) asked.set('after', after);
  return asked.toString();
}

// follow calls changed when something else is asked for, and shows where there are more pages.
export function follow(changed) {
  const newer = document.getElementById('newer'), older = document.getElementById('older');
  const go = (to) => {
    after = to;
    changed();
  };
  form.addEventListener('input', () => {
    left.length = 0;
    remember();
    go('');
  });
  form.addEventListener('submit', (e) => e.preventDefault());
  older.addEventListener('click', () => {
    left.push(after);
    go(older.value);
  });
  newer.addEventListener('click', () => go(left.pop()));
  return (next) => {
    newer.hidden = left.length === 0;
    older.hidden = next === null;
    older.value = next ?? '';
  };
}
