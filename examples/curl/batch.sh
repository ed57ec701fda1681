#!/bin/sh
# Uploads a batch file, runs it, and prints its results: batch.sh requests.jsonl
set -eu
url="${OPENAI_BASE_URL:-http://127.0.0.1:8080/v1}"

call() {
	path="$1"
	shift
	curl --silent --show-error --fail-with-body -H "Authorization: Bearer ${OPENAI_API_KEY:-none}" "$@" "$url$path"
}

file=$(call /files -F purpose=batch -F "file=@$1" | jq -r .id)
batch=$(jq -n --arg file "$file" \
	'{input_file_id: $file, endpoint: "/v1/chat/completions", completion_window: "24h", tidefill: {deadline: "2h"}}' |
	call /batches -H "Content-Type: application/json" --data @- | jq -r .id)
echo "batch $batch" >&2

# The stream of events ends with the batch.
call "/batches/$batch/events" --no-buffer >/dev/null
call "/batches/$batch" | jq '{status, request_counts}' >&2
for result in $(call "/batches/$batch" | jq -r '.output_file_id, .error_file_id | select(. != null)'); do
	call "/files/$result/content"
done
