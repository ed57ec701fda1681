// Names templates and profiles as users of AIBrix do, and prints the batch and how the SDK reports each error.
import fs from "node:fs";
import { ended, newClient, print } from "./client.mjs";

const { client, requests } = newClient();
const file = await client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch" });
const params = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" };
const created = await client.batches.create({
  ...params,
  aibrix: {
    model_template: { name: "small", version: "", overrides: { engine_args: { max_num_seqs: 8 } } },
    profile: { name: "day", overrides: { scheduling: { max_concurrency: 2 } } },
  },
});
const batch = await ended(client, created.id);
const before = requests.count;
const errors = [];
for (const members of JSON.parse(process.argv[3])) {
  try {
    await client.batches.create({ ...params, ...members });
    errors.push({});
  } catch (err) {
    errors.push({ class: err.constructor.name, param: err.param, code: err.code, type: err.type });
  }
}
print({ resolved: created._aibrix, status: batch.status, counts: batch.request_counts, errors, sent: requests.count - before });
