// Requests one error after the other and prints how the SDK reports it, and how often it sent a request.
import fs from "node:fs";
import { ended, newClient, print } from "./client.mjs";

const { client, requests } = newClient();
const foreign = newClient({ apiKey: process.env.FOREIGN_API_KEY });
const wrong = newClient({ apiKey: "sk-wrong" });
const file = await client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch" });
const params = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" };
const batch = await client.batches.create(params);
await ended(client, batch.id);

const faults = {};
async function meet(name, counter, call) {
  const before = counter.count;
  try {
    await call();
  } catch (err) {
    faults[name] = {
      class: err.constructor.name,
      status: err.status,
      code: err.code ?? "",
      param: err.param ?? "",
      type: err.type,
      hasRequestID: Boolean(err.requestID),
      requests: counter.count - before,
    };
  }
}

await meet("wrong key", wrong.requests, () => wrong.client.batches.retrieve(batch.id));
await meet("unknown batch", requests, () => client.batches.retrieve("batch_nope"));
await meet("unknown file", requests, () => client.files.content("file-nope"));
await meet("foreign batch", foreign.requests, () => foreign.client.batches.retrieve(batch.id));
await meet("foreign file", foreign.requests, () => foreign.client.files.delete(file.id));
await meet("foreign content", foreign.requests, () => foreign.client.files.content(file.id));
await meet("unknown key", requests, () => client.batches.create({ ...params, extra_body: {} }));
await meet("unknown option", requests, () => client.batches.create({ ...params, tidefill: { nope: 1 } }));
await meet("no window", requests, () => client.batches.create({ ...params, completion_window: undefined }));
await meet("bad purpose", requests, () =>
  client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch_output" }),
);
await meet("late cancel", requests, () => client.batches.cancel(batch.id));
print(faults);
