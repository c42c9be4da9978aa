// Command server is the port over a scripted model, for tests of SDKs and agents:
//
//	go run ./runtime/openai/scripttest/server [-listen 127.0.0.1:0] [-step 1ms] [-key KEY]
//
// It prints the base URL, and serves until it is interrupted or its input ends, so that a test that
// dies leaves no server running. The script is in the prompt (package scripttest).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/scripttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/browser"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	step := flag.Duration("step", 0, "how long a step takes at least")
	key := flag.String("key", "", "the API key")
	verbose := flag.Bool("v", false, "log each request")
	profile := flag.String("cpuprofile", "", "write a profile of the processor's time there")
	interval := flag.Int("interval", 0, "tokens in an event; 0: by load")
	search := flag.String("search", "", "the URL of a SearXNG on this machine, for a real browser")
	stay := flag.Bool("stay", false, "do not end when the input does")
	flag.Parse()
	if *profile != "" {
		file, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(*listen, *key, *step, *interval, *verbose, *stay,
		*search); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, key string, step time.Duration, interval int, verbose, stay bool,
	search string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	store := records.NewStore()
	m := scripttest.New(step, store)
	defer m.Close()
	log := slog.New(slog.DiscardHandler)
	if verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	open := scripttest.Tools
	if search != "" {
		engine, _, err := browser.Engine(search)
		if err != nil {
			return err
		}
		open = func(kind, label string) ([]session.Tool, error) {
			if kind != tools.Browser {
				return scripttest.Tools(kind, label)
			}
			return []session.Tool{browser.New(browser.Options{Search: engine,
				Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})}, nil
		}
	}
	handler := openai.NewHandler(openai.Options{
		Options: answer.Options{Models: scripttest.Models(m), Store: store, Log: log,
			Interval: interval},
		APIKey: key, Version: "0.0.0-script", Tools: open,
		Offers: scripttest.Offers})
	defer handler.Close()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}
	if !stay {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until the parent process ends
			stop()
		}()
	}
	fmt.Printf("http://%s/v1\n", listener.Addr())
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
