// Answers a user at once with the AI SDK, and leaves work that can wait to a batch: node reviews.mjs
import { setTimeout } from "node:timers/promises";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import OpenAI, { toFile } from "openai";

const baseURL = process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8080/v1";
const apiKey = process.env.OPENAI_API_KEY ?? "none";
const model = process.env.MODEL ?? "Qwen/Qwen3-8B";

// Interactive: the daemon serves it with inline.enabled.
const tidefill = createOpenAICompatible({ name: "tidefill", baseURL, apiKey });
const { textStream } = streamText({
  model: tidefill(model),
  prompt: "What do customers mean by 'it just works'?",
  maxOutputTokens: 32,
  onError: ({ error }) => {
    throw error;
  },
});
for await (const text of textStream) process.stdout.write(text);
process.stdout.write("\n");

// The AI SDK has no batches, so the official SDK sends them.
const client = new OpenAI({ baseURL, apiKey });
const reviews = ["It broke after a day.", "I would buy it again.", "Does what it says."];
const lines = reviews.map((review, i) => JSON.stringify({
  custom_id: `review-${i + 1}`,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model, messages: [{ role: "user", content: `Positive or negative? '${review}'` }], max_tokens: 16 },
}));
const file = await client.files.create({ file: await toFile(Buffer.from(lines.join("\n")), "reviews.jsonl"), purpose: "batch" });
let batch = await client.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" });
while (!["completed", "failed", "expired", "cancelled"].includes(batch.status)) {
  await setTimeout(1000);
  batch = await client.batches.retrieve(batch.id);
}
console.error(batch.id, batch.status, batch.request_counts);
if (batch.output_file_id) process.stdout.write(await (await client.files.content(batch.output_file_id)).text());
