// Command ossrun runs OpenAI's gpt-oss models on the local machine. Every command is implemented in
// ui/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ossrun/ossrun/ui/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program, unless a verb listens to it
	code := cli.Run(ctx, os.Args, cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
