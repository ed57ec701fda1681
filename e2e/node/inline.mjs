// Sends interactive requests of each kind as users do, and prints what the SDK returned of each.
import { newClient, print } from "./client.mjs";

const { client } = newClient();
const model = process.argv[2];
const messages = [{ role: "user", content: "Say something." }];
const seen = {};
async function attempt(name, run) {
  try {
    seen[name] = await run();
  } catch (err) {
    seen[name] = { class: err.constructor.name, status: err.status, code: err.code, param: err.param, type: err.type };
  }
}
async function collect(stream, pick) {
  const all = [];
  for await (const event of stream) all.push(pick(event));
  return all;
}
const usage = ({ usage: u }) => u && [u.prompt_tokens ?? u.input_tokens, u.completion_tokens ?? u.output_tokens ?? 0];

await attempt("chat", async () => {
  const a = await client.chat.completions.create({ model, messages, max_tokens: 8 });
  return { model: a.model, usage: usage(a), finish: a.choices[0].finish_reason };
});
await attempt("chat stream", async () => {
  const events = await collect(
    await client.chat.completions.create({ model, messages, max_tokens: 8, stream: true, stream_options: { include_usage: true } }),
    (e) => ({ model: e.model, usage: usage(e) ?? null, finish: e.choices[0]?.finish_reason ?? null }));
  return { models: [...new Set(events.map((e) => e.model))], usage: events.at(-1).usage, events: events.length };
});
await attempt("completion", async () => {
  const a = await client.completions.create({ model, prompt: "Once", max_tokens: 4 });
  return { model: a.model, usage: usage(a) };
});
await attempt("response", async () => {
  const a = await client.responses.create({ model, input: "Say something.", max_output_tokens: 8 });
  return { model: a.model, status: a.status, usage: usage(a), text: a.output_text.length > 0 };
});
await attempt("response stream", async () => {
  const events = await collect(await client.responses.create({ model, input: "Say something.", max_output_tokens: 8, stream: true }),
    (e) => ({ type: e.type, model: e.response?.model }));
  return { types: [...new Set(events.map((e) => e.type))].length, models: [...new Set(events.map((e) => e.model).filter(Boolean))] };
});
await attempt("embedding", async () => {
  const a = await client.embeddings.create({ model, input: ["a", "b"] });
  return { model: a.model, vectors: a.data.length };
});
await attempt("moderation", async () => {
  const a = await client.moderations.create({ model, input: "hello" });
  return { model: a.model, results: a.results.length };
});
await attempt("unknown model", () => client.chat.completions.create({ model: "nobody-has-it", messages }));
await attempt("no model", () => client.post("/chat/completions", { body: { messages } }));
await attempt("abort", async () => {
  const stream = await client.chat.completions.create({ model, messages, max_tokens: 10000, stream: true });
  for await (const _ of stream) break;
  return "left";
});
seen.models = (await client.models.list()).data.map((m) => m.id).sort();
print(seen);
