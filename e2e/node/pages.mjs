// Makes files and batches within a second or two and walks their lists page by page.
import fs from "node:fs";
import { newClient, print } from "./client.mjs";

const { client } = newClient();
const files = [];
const batches = [];
for (let i = 0; i < 13; i++) {
  const file = await client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch" });
  files.push(file.id);
}
for (let i = 0; i < 13; i++) {
  const batch = await client.batches.create({
    input_file_id: files[0],
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  batches.push(batch.id);
}

async function walk(list) {
  const ids = [];
  for await (const entry of list) ids.push(entry.id);
  return ids;
}

print({
  files,
  batches,
  listedFiles: await walk(client.files.list({ limit: 4, purpose: "batch" })),
  listedAsc: await walk(client.files.list({ limit: 1, order: "asc", purpose: "batch" })),
  listedBatches: await walk(client.batches.list({ limit: 13 })),
});
