// What the scripts share. Each prints one JSON value for the Go test that runs it.
import OpenAI from "openai";

/** A client whose requests are counted and can be looked at. */
export function newClient(options = {}, look = () => {}) {
  const requests = { count: 0 };
  const client = new OpenAI({
    ...options,
    fetch: async (url, init) => {
      requests.count++;
      look(url, init);
      return fetch(url, init);
    },
  });
  return { client, requests };
}

export const print = (value) => process.stdout.write(JSON.stringify(value));

/** Polls as users do. */
export async function ended(client, id) {
  for (;;) {
    const batch = await client.batches.retrieve(id);
    if (["completed", "failed", "expired", "cancelled"].includes(batch.status)) return batch;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
