"""Runs a batch and prints its answers: python batch.py requests.jsonl"""

import json
import os
import sys
import time

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)

with open(sys.argv[1], "rb") as requests:
    file = client.files.create(file=requests, purpose="batch")
batch = client.batches.create(
    input_file_id=file.id,
    endpoint="/v1/chat/completions",
    completion_window="24h",
    extra_body={"tidefill": {"deadline": "2h", "priority": 5}},
)
while batch.status not in ("completed", "failed", "expired", "cancelled"):
    time.sleep(2)
    batch = client.batches.retrieve(batch.id)
print(batch.id, batch.status, batch.request_counts, file=sys.stderr)

if batch.output_file_id:
    for line in client.files.content(batch.output_file_id).iter_lines():
        result = json.loads(line)
        print(result["custom_id"], result["response"]["body"]["choices"][0]["message"]["content"])
