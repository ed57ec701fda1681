package demo

import (
	"fmt"
	"os"
	"strings"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
)

// printNextCommands prints commands to try with the running daemon.
func (d *Demo) printNextCommands(daemon *app.App, b client.Batch, input string) {
	command := "tidefill"
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") {
		command = "go run ./cmd/tidefill"
	}
	server := ""
	if daemon.URL() != client.DefaultServer {
		server = " --server " + daemon.URL()
	}
	end := ""
	if d.temporary {
		end = " (which removes its data; --data DIR keeps them)"
	}
	fmt.Fprintf(d.Out, "\nThe daemon serves until Ctrl-C%s.\n", end)
	if admin := daemon.AdminURL(); admin != "" {
		fmt.Fprintf(d.Out, `
Open %[1]s/console, or see what users feel and what limits batch work by

  %[2]s explain --admin %[1]s

`, admin, command)
	}
	fmt.Fprintf(d.Out, `Try, in another terminal:

  curl %[1]s/v1/batches/%[2]s
  curl %[1]s/v1/files/%[3]s/content

  %[4]s batch submit %[5]s --wait%[6]s
  %[4]s batches%[6]s
  %[4]s verify %[2]s%[6]s

or with the OpenAI SDK for Python:

  from openai import OpenAI
  client = OpenAI(base_url="%[1]s/v1", api_key="none")
  file = client.files.create(file=open("%[5]s", "rb"), purpose="batch")
  batch = client.batches.create(input_file_id=file.id, endpoint="%[7]s", completion_window="24h")
  print(client.batches.retrieve(batch.id).request_counts)
`, daemon.URL(), b.ID, b.OutputFileID, command, input, server, endpoint)
	if admin := daemon.AdminURL(); admin != "" {
		fmt.Fprintf(d.Out, "\nHealth and metrics: %[1]s/readyz, %[1]s/metrics\n", admin)
	}
}
