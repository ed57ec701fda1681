// Uploads one file in every shape that the SDK knows.
import fs from "node:fs";
import path from "node:path";
import { toFile, toStreamingFile } from "openai";
import { newClient, print } from "./client.mjs";

const name = process.argv[2];
const content = fs.readFileSync(name);
let chunked;
const { client } = newClient({}, (_, init) => {
  chunked = init.body instanceof ReadableStream;
});
const purpose = "batch";

async function* pieces() {
  for (let i = 0; i < content.length; i += 70001) yield content.subarray(i, i + 70001);
}

const shapes = {
  stream: async () => ({ file: fs.createReadStream(name), purpose }),
  stream_purpose_first: async () => ({ purpose, file: fs.createReadStream(name) }),
  file: async () => ({ file: new File([content], path.basename(name)), purpose }),
  to_file: async () => ({ purpose, file: await toFile(content, "to-file.jsonl") }),
  streaming_file: async () => ({ file: await toStreamingFile(pieces(), "pieces.jsonl"), purpose }),
  response: async () => ({ file: await toFile(new Response(content), "response.jsonl"), purpose }),
  expires_after: async () => ({
    expires_after: { anchor: "created_at", seconds: 3600 },
    file: fs.createReadStream(name),
    purpose,
  }),
};

const sent = {};
for (const [shape, params] of Object.entries(shapes)) {
  sent[shape] = { file: await client.files.create(await params()), chunked };
}
print(sent);
