// Runs a batch and prints its answers: node batch.mjs requests.jsonl
import fs from "node:fs";
import { setTimeout } from "node:timers/promises";
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8080/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});

const file = await client.files.create({ file: fs.createReadStream(process.argv[2]), purpose: "batch" });
let batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
  tidefill: { deadline: "2h", priority: 5 },
});
while (!["completed", "failed", "expired", "cancelled"].includes(batch.status)) {
  await setTimeout(1000);
  batch = await client.batches.retrieve(batch.id);
}
console.error(batch.id, batch.status, batch.request_counts);

if (batch.output_file_id) {
  const content = await client.files.content(batch.output_file_id);
  for (const line of (await content.text()).trim().split("\n")) {
    const result = JSON.parse(line);
    console.log(result.custom_id, result.response.body.choices[0].message.content);
  }
}
