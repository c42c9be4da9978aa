// Command ossrun runs OpenAI's gpt-oss models on the local machine. Every command is implemented in
// ui/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"os/user"
	"runtime"
	"syscall"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/ui/cli"
)

func main() {
	findHome()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program, unless a verb listens to it
	code := cli.Run(ctx, os.Args, cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// findHome sets HOME where nothing has, as in a root service of systemd: models and settings are
// then where the user's shell has them.
func findHome() {
	if os.Getenv("HOME") != "" || runtime.GOOS == "windows" {
		return
	}
	if me, err := user.Current(); err == nil {
		_ = os.Setenv("HOME", me.HomeDir) // the name is valid
		xdg.Reload()
	}
}
