// Loses the answer to every first attempt, so that the SDK asks again under the same idempotency key.
import fs from "node:fs";
import OpenAI, { toFile } from "openai";
import { newClient, print } from "./client.mjs";

let attempts = 0;
const client = new OpenAI({
  fetch: async (url, init) => {
    const response = await fetch(url, init);
    if (init.method.toUpperCase() !== "POST" || ++attempts % 2 === 0) return response;
    await response.arrayBuffer();
    throw new TypeError("fetch failed");
  },
});
const input = await toFile(fs.readFileSync(process.argv[2]), "input.jsonl");
const file = await client.files.create(
  { file: input, purpose: "batch" },
  { headers: { "Idempotency-Key": "upload-1" } },
);
await client.batches.create(
  { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" },
  { headers: { "Idempotency-Key": "batch-1" } },
);

async function count(list) {
  let n = 0;
  for await (const _ of list) n++;
  return n;
}
const plain = newClient().client;
print({
  attempts,
  files: await count(plain.files.list({ purpose: "batch", order: "asc" })),
  batches: await count(plain.batches.list()),
});
