// Command gofakes3 serves S3 from memory, with other quirks than versitygw has. It is a second
// server for the conformance tests of store/s3.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", l.Addr())
	faker := gofakes3.New(s3mem.New())
	log.Fatal(http.Serve(l, faker.Server())) // it runs until its test kills it
}
