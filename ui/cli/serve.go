// ossrun serve: the OpenAI port.
//
//	loading -> ready -> draining -> gone
//
// The port is taken before the weights are loaded, so that a port in use is said at once, and answers from then on: /health
// says 503 until the model is there, and requests wait for it. SIGINT, SIGTERM or ossrun stop let the running requests end
// for up to 30 s, while new ones get 503; a second signal ends at once.

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/join"
	"github.com/ossrun/ossrun/runtime/openai"
)

const (
	drainTime = 30 * time.Second
	// lastWords is how long answers that were cut may take to say so.
	lastWords = 5 * time.Second
)

// started is when this process began, for ossrun ps and /v1/models.
var started = time.Now()

func serveCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve an OpenAI-compatible port",
		ArgsUsage: "[flags] [MODEL]",
		Description: "Example: ossrun serve --port 8000\n" +
			"         then, in Python: OpenAI(base_url=\"http://127.0.0.1:8000/v1\", api_key=\"none\")\n" +
			"         ossrun serve openai/gpt-oss-20b --max-model-len 32768 --keep-alive 30m\n\n" +
			"A request's `model` may name any gpt-oss that is on this machine; two stay loaded where they fit. vLLM's\n" +
			"command lines and YAML files are understood; what they ask for that this engine does otherwise is said.\n" +
			"Ctrl-C or ossrun stop lets running requests end for up to 30 s; a second Ctrl-C ends at once.\n\n" + exitCodes,
		Flags: serveFlags(),
		Action: func(c *cli.Context) error {
			return serve(c, t)
		},
	}
}

func serveFlags() []cli.Flag {
	flags := append(engineFlags(), memoryFlags()...)
	flags = append(flags, keepFlags()...)
	flags = append(flags, batchFlags()...)
	flags = append(flags,
		&cli.StringFlag{Name: "host", Category: groupListen, Value: "127.0.0.1", Usage: "listen on this `ADDRESS`; 0.0.0.0 is every one"},
		&cli.IntFlag{Name: "port", Category: groupListen, Value: 8000, Usage: "listen on port `N`; 0 picks a free one"},
		&cli.StringFlag{Name: "api-key", Category: groupListen, Usage: "ask clients for this `KEY`"},
		&cli.StringFlag{Name: "allowed-origins", Category: groupListen, Usage: "web `ORIGINS` that may read the answers, with commas between; * is every one (default: pages of this machine)"},
		&cli.StringFlag{Name: "served-model-name", Category: groupListen, Usage: "serve one model, under these `NAMES` with commas between, and switch to no other"},
		&cli.StringFlag{Name: "keep-alive", Category: groupLife, Value: "never", Usage: "unload a model that nobody has asked for `TIME`, as 5m; the next request loads it again; 0 is at once"},
		&cli.StringFlag{Name: "engine", Category: groupLife, Value: "native", Usage: "`E` of vllm prints the command that asks vLLM for the same, for what this engine cannot do"},
		maxReasoningFlag(),
		printConfigFlag())
	return append(flags, vllmFlags()...)
}

func serve(c *cli.Context, t Terminal) error {
	if err := modelArgument(c); err != nil {
		return err
	}
	switch e := strings.ToLower(c.String("engine")); e {
	case "native":
	case "vllm":
		model := c.String("model")
		if model == "" {
			model = "openai/gpt-oss-20b"
		}
		return fail(exitFailure, "this version does not start vLLM itself; where vLLM is installed, run: %s", vllmCommand(c, vllmModel(model)))
	default:
		return fail(exitUsage, "--engine must be native or vllm, not %q", c.String("engine"))
	}
	notes, err := vllmNotes(c)
	if err != nil {
		return err
	}
	dev, err := openDevice(c)
	if err != nil {
		return err
	}
	k, err := readKnobs(c, kindOf(dev), deviceMemory(dev))
	if err != nil || c.Bool("print-config") {
		err = errors.Join(err, dev.Close())
		if err == nil {
			err = printConfig(t.Out, c, &k)
		}
		return err
	}
	k.notes = append(notes, k.notes...)
	k.say(t)
	listener, err := listen(c.String("host"), c.Int("port"))
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	defer listener.Close()
	found, err := chooseModel(c, t, dev, false)
	if err = errors.Join(err, dev.Close()); err != nil {
		return err
	}
	kept := openKept(t, k)
	s := newServer(c, t, newStock(c, t, k, found, kept), listener)
	err = s.run(c.Context)
	if lost := kept.close(); lost != nil {
		fmt.Fprintf(t.Err, "ossrun: not everything could be kept for the next start: %s\n", lost)
	}
	return err
}

// modelArgument takes the model as vLLM does: ossrun serve MODEL.
func modelArgument(c *cli.Context) error {
	switch {
	case c.NArg() == 0:
		return nil
	case c.NArg() > 1:
		return fail(exitUsage, "serve takes one model, not also %q; see ossrun serve --help", c.Args().Get(1))
	case c.IsSet("model") && origin(c, "model") == "command line" && c.String("model") != c.Args().First():
		return fail(exitUsage, "two models are named: %s and, with --model, %s; leave one out", c.Args().First(), c.String("model"))
	}
	noteOrigin(c, "model", "command line")
	return c.Set("model", c.Args().First())
}

// server is one ossrun serve.
type server struct {
	c        *cli.Context
	t        Terminal
	stock    *stock
	http     *http.Server
	listener net.Listener
	state    atomic.Value // join.State
	stop     chan bool    // ossrun stop; true: at once
}

func newServer(c *cli.Context, t Terminal, st *stock, listener net.Listener) *server {
	s := &server{c: c, t: t, stock: st, listener: listener, stop: make(chan bool, 2)}
	s.state.Store(join.Loading)
	log := slog.New(slog.NewTextHandler(t.Err, nil))
	s.http = &http.Server{
		Handler: openai.NewHandler(openai.Options{Models: st, APIKey: c.String("api-key"), Version: build().Version, Log: log,
			Origins: origins(c.String("allowed-origins")), Interval: st.k.interval, MaxReasoning: maxReasoning(c), Store: st.kept.store, Ready: s.ready}),
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s
}

// origins reads a list with commas, or the JSON list of vLLM's command line.
func origins(s string) (list []string) {
	for _, o := range strings.Split(strings.Trim(strings.TrimSpace(s), "[]"), ",") {
		if o = strings.Trim(strings.TrimSpace(o), `"'`); o != "" {
			list = append(list, o)
		}
	}
	return list
}

// ready is what /health asks.
func (s *server) ready() error {
	switch s.state.Load().(join.State) {
	case join.Loading:
		return errors.New("loading the model")
	case join.Draining:
		return errors.New("draining: the server is about to stop")
	}
	return nil
}

func (s *server) url() string { return "http://" + s.listener.Addr().String() }

// run serves until something ends it.
func (s *server) run(ctx context.Context) (err error) {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	closeSocket := s.openSocket()
	defer closeSocket()
	loaded := make(chan error, 1)
	go func() { loaded <- s.stock.set.Ensure(ctx, keyOf(s.stock.first)) }()
	now := false
	for {
		select {
		case err := <-failed:
			return errors.Join(fail(exitFailure, "the server stopped: %s", err), s.stock.set.Close())
		case err := <-loaded:
			if err != nil && ctx.Err() == nil {
				err = errors.Join(plainLoadError(err), s.stock.set.Close(), s.http.Close())
				<-failed
				return err
			}
			if err == nil {
				s.state.Store(join.Ready)
				s.announce()
			}
			loaded = nil
			continue
		case now = <-s.stop:
		case <-ctx.Done():
		}
		break
	}
	err = s.drain(now)
	<-failed
	return err
}

// plainLoadError is the error of the first load as the command line says it.
func plainLoadError(err error) error {
	var e *exitError
	if errors.As(err, &e) {
		return e
	}
	return err
}

// drain ends the server: new requests are refused, the running ones have drainTime, unless a second signal comes or now is set.
func (s *server) drain(now bool) error {
	s.state.Store(join.Draining)
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if now {
		cancel()
	} else {
		fmt.Fprintln(s.t.Err, "ossrun: stopping; running requests have 30 s to end, a second Ctrl-C ends them now")
	}
	done := make(chan struct{})
	second := false
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-again:
			second = true
			cancel()
		case now := <-s.stop:
			if now {
				cancel()
			}
		case <-done:
		}
	})
	cut, err := s.stock.set.Drain(ctx)
	close(done)
	watch.Wait()
	last, end := context.WithTimeout(context.Background(), lastWords)
	defer end()
	if shut := s.http.Shutdown(last); shut != nil {
		_ = s.http.Close() // connections that would not end; the process is about to
	}
	if err != nil {
		return fail(exitFailure, "stopping the server: %s", err)
	}
	if cut > 0 {
		fmt.Fprintf(s.t.Err, "ossrun: %d request%s did not end in time and got an error\n", cut, plural(cut))
	}
	if second {
		return context.Canceled // exit code 130 where a signal began it
	}
	return nil
}

// announce says where the port is and what was planned for it.
func (s *server) announce() {
	m := s.stock.set.Find(keyOf(s.stock.first))
	if m == nil {
		return // unloaded again already
	}
	for _, line := range append(m.Plan().Lines(), s.stock.kept.line()) {
		if line != "" {
			fmt.Fprintf(s.t.Err, "ossrun: %s\n", line)
		}
	}
	fmt.Fprintf(s.t.Err, "ossrun: %s on %s, context %d tokens: %s/v1\n", s.stock.shownName(s.stock.first), m.Device(), m.ContextLength(), s.url())
	if ip, ok := s.listener.Addr().(*net.TCPAddr); ok && !ip.IP.IsLoopback() && s.c.String("api-key") == "" {
		fmt.Fprintln(s.t.Err, "ossrun: other machines can use this port without a key; --api-key K asks for one")
	}
}

func listen(host string, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, fail(exitUsage, "--port must lie between 0 and 65535, not %d", port)
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fail(exitPort, "port %d on %s is in use: stop what listens there%s, or choose another with --port", port, host, whoListens(port))
	case errors.Is(err, os.ErrPermission):
		return nil, fail(exitPort, "port %d on %s may not be used by this user: choose one above 1023 with --port", port, host)
	}
	return nil, fail(exitPort, "cannot listen on %s: %s", address, rootCause(err))
}

// rootCause strips the wrappers of net errors, which repeat the address.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
