// Command batch runs a batch and prints its results: go run . requests.jsonl
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path string) error {
	client := openai.NewClient(
		option.WithBaseURL(cmp.Or(os.Getenv("OPENAI_BASE_URL"), "http://127.0.0.1:8080/v1")),
		option.WithAPIKey(cmp.Or(os.Getenv("OPENAI_API_KEY"), "none")))
	requests, err := os.Open(path)
	if err != nil {
		return err
	}
	defer requests.Close()
	file, err := client.Files.New(ctx, openai.FileNewParams{
		File: requests, Purpose: openai.FilePurposeBatch})
	if err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	batch, err := client.Batches.New(ctx, openai.BatchNewParams{
		InputFileID:      file.ID,
		Endpoint:         openai.BatchNewParamsEndpointV1ChatCompletions,
		CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
	}, option.WithJSONSet("tidefill.deadline", "2h"), option.WithJSONSet("tidefill.priority", 5))
	for err == nil && !ended(batch.Status) {
		time.Sleep(time.Second)
		batch, err = client.Batches.Get(ctx, batch.ID)
	}
	if err != nil {
		return fmt.Errorf("run a batch of %s: %w", path, err)
	}
	log.Printf("%s %s, %d of %d lines", batch.ID, batch.Status, batch.RequestCounts.Completed,
		batch.RequestCounts.Total)
	if batch.OutputFileID == "" {
		return nil
	}
	content, err := client.Files.Content(ctx, batch.OutputFileID)
	if err != nil {
		return fmt.Errorf("fetch the results of %s: %w", batch.ID, err)
	}
	defer content.Body.Close()
	_, err = io.Copy(os.Stdout, content.Body)
	return err
}

func ended(status openai.BatchStatus) bool {
	switch status {
	case openai.BatchStatusCompleted, openai.BatchStatusFailed, openai.BatchStatusExpired,
		openai.BatchStatusCancelled:
		return true
	}
	return false
}
