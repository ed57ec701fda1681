// Runs a batch from the upload to its results, which are read as a stream.
import fs from "node:fs";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { ended, newClient, print } from "./client.mjs";

const { client } = newClient();
const file = await client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch" });
await client.files.waitForProcessing(file.id);
const created = await client.batches.create({
  input_file_id: file.id,
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
  metadata: { project: "nightly" },
  tidefill: { priority: 7 },
});
const batch = await ended(client, created.id);
const content = await client.files.content(batch.output_file_id);
const digests = {};
for await (const line of createInterface({ input: Readable.fromWeb(content.body) })) {
  const result = JSON.parse(line);
  digests[result.custom_id] = result.response.body.choices[0].message.content;
}
print({ created, ended: batch, digests, requestID: batch._request_id });
