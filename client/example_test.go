package client_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tidefill/tidefill/client"
)

// A program runs a batch and downloads its results.
func Example() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:8080", client.Options{APIKey: os.Getenv("API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	in, err := os.Open("requests.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	file, err := c.Upload(ctx, "requests.jsonl", in, -1)
	if err != nil {
		log.Fatal(err)
	}
	b, err := c.CreateBatch(ctx, client.BatchRequest{
		InputFileID: file.ID, Endpoint: "/v1/chat/completions", CompletionWindow: "24h",
	})
	if err != nil {
		log.Fatal(err)
	}
	b, err = c.Watch(ctx, b.ID, func(b client.Batch) {
		fmt.Printf("%d of %d lines\n", b.Counts.Done(), b.Counts.Total)
	})
	if err != nil {
		log.Fatal(err)
	}
	names, err := c.Download(ctx, b, "results")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Status, names)
}
