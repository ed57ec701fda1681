// Requests what would become of a batch, and the errors of such requests.
import fs from "node:fs";
import { newClient, print } from "./client.mjs";

const { client, requests } = newClient();
const file = await client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch" });
const params = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "1h" };
const dry = { query: { dry_run: "true" } };
const before = requests.count;
const preview = await client.batches.create({ ...params, tidefill: { deadline: "30m" } }, dry);
let error;
try {
  await client.batches.create({ ...params, input_file_id: "file-x" }, dry);
} catch (err) {
  error = { class: err.constructor.name, param: err.param };
}
const sent = requests.count - before;
const batches = [];
for await (const batch of client.batches.list()) batches.push(batch.id);
print({ preview, error, sent, batches });
