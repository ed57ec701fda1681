// Requests to the daemon: what it shows everyone at this address, and the API, which may ask for a key. Errors have the sentence
// of the answer, and its status; 0: there was no answer.

const patience = 8000; // milliseconds

export async function get(path) {
  return (await send(path, { signal: AbortSignal.timeout(patience) })).json();
}

// The key stays in this page, until that is closed or reloaded.
export const key = { value: '' };

// call sends a request to the API, and returns its answer. The body is a form, or becomes JSON. The API decides by the key.
export async function call(method, path, body, headers = {}) {
  if (/[^!-~]/.test(key.value)) throw failure('The key has a character that no key has.', 401);
  if (key.value) headers.Authorization = 'Bearer ' + key.value;
  if (body && !(body instanceof FormData)) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(body);
  }
  return send(path, { method, headers, body });
}

// ask is call for a tenant, at the address of the console.
export function ask(method, path, tenant, body) {
  return call(method, 'console/api/v1/' + path, body, { 'Tidefill-Tenant': tenant });
}

async function send(path, options) {
  const answer = await fetch(path, { cache: 'no-store', ...options }).catch(() => { throw failure('The server is not reachable.', 0); });
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  throw failure(body?.error?.message ?? `${path}: status ${answer.status}`, answer.status);
}

function failure(message, status) {
  return Object.assign(new Error(message), { status });
}
