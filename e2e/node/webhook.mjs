// Verifies deliveries of webhooks as users do, and that the SDK refuses what was not signed so.
import fs from "node:fs";
import OpenAI from "openai";
import { print } from "./client.mjs";

const [file, secret, other] = process.argv.slice(2);
const client = new OpenAI({ webhookSecret: secret });
const events = [];
const refused = [];
for (const { body, headers } of JSON.parse(fs.readFileSync(file))) {
  events.push(await client.webhooks.unwrap(body, headers));
  events.push(await client.webhooks.unwrap(body, headers, other));
  for (const attempt of [
    () => client.webhooks.unwrap(body + " ", headers),
    () => client.webhooks.unwrap(body, { ...headers, "webhook-id": "evt_x" }),
    () => client.webhooks.unwrap(body, headers, "whsec_" + Buffer.from("x".repeat(32)).toString("base64")),
  ]) {
    try {
      await attempt();
      refused.push("accepted");
    } catch (err) {
      refused.push(err.constructor.name);
    }
  }
}
print({ events, refused });
