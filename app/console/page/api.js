// Requests to the daemon: what it shows everyone at this address, and the API, which may ask for a key.

const patience = 8000; // milliseconds

export async function get(path) {
  const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(patience) });
  if (!answer.ok) throw await refusal(answer, path);
  return answer.json();
}

// The key stays in this page, until that is closed or reloaded.
export const key = { value: '' };

// ask sends a request to the API for a tenant, and returns its answer. The API decides by the key.
export async function ask(method, path, tenant, body) {
  const headers = { 'Tidefill-Tenant': tenant };
  if (key.value) headers.Authorization = 'Bearer ' + key.value;
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch('console/api/v1/' + path, { method, headers, body: body && JSON.stringify(body), cache: 'no-store' });
  if (!answer.ok) throw await refusal(answer, path);
  return answer;
}

// refusal returns the error of an answer, with the sentence in it if there is one.
async function refusal(answer, path) {
  const body = await answer.json().catch(() => null);
  const error = new Error(body?.error?.message ?? `${path}: status ${answer.status}`);
  error.status = answer.status;
  return error;
}
