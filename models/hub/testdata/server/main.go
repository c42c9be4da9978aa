// Command server is a hub for tests in other languages: someone/tune with two small shards, and
// someone/large with one file of -size bytes. It prints its address and serves until its stdin
// ends; each line on stdin is answered with the bytes sent so far.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/ossrun/ossrun/models/hub/hubtest"
)

func main() {
	size := flag.Int64("size", 1<<20, "bytes of someone/large")
	flag.Parse()
	s := hubtest.New()
	defer s.Close()
	config := hubtest.Text(`{"model_type": "gpt_oss"}`)
	s.Add("someone/tune", &hubtest.Repo{Refs: []string{"v1"}, Files: map[string]*hubtest.File{
		"README.md":      hubtest.Text("# tune\n"),
		"config.json":    config,
		"tokenizer.json": hubtest.LFS(bytes.Repeat([]byte("token"), 1000)),
		"model.safetensors.index.json": hubtest.Text(
			`{"weight_map": {"a": "model-00000-of-00001.safetensors"}}`),
		"model-00000-of-00001.safetensors": hubtest.Generated(300_000, 1),
		"model-00001-of-00001.safetensors": hubtest.Generated(200_000, 2),
		"original/model.safetensors":       hubtest.Generated(1000, 3),
	}})
	large := hubtest.Generated(*size, 4)
	large.ETag() // hashed before anybody's clock starts
	s.Add("someone/large", &hubtest.Repo{Files: map[string]*hubtest.File{"config.json": config,
		"model.safetensors": large}})
	fmt.Println(s.Hub.URL)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(s.Sent(""))
	}
}
