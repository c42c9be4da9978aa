// ossrun serve: the OpenAI port.
//
//	loading -> ready -> draining -> gone
//
// The port is opened before the model is found, so that a port in use is reported at once. While
// the model is downloaded, every request gets 503; while it is loaded, /health does and requests
// wait. SIGINT, SIGTERM or ossrun stop give running requests up to 30 s, while new ones get 503; a
// second signal ends them at once.

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const (
	drainTime = 30 * time.Second
	// closeTime is how long interrupted answers may take to send their error.
	closeTime = 5 * time.Second
)

func serveCommand(t Terminal) *cli.Command {
	v := &serveVerb{terminal: t}
	flags := v.flags()
	hide(flags, func(group, _ string) bool { return group == string(groupVLLM) })
	return &cli.Command{
		Name:  "serve",
		Flags: flags,
		Action: func(c *cli.Context) error {
			v.c, v.start = c, time.Now()
			return v.run()
		},
	}
}

// serveVerb has the flags of ossrun serve.
type serveVerb struct {
	c        *cli.Context
	terminal Terminal
	start    time.Time

	portFlags
	options       serve.Options
	toolOptions   tools.Options
	engine        string
	shareSessions bool
	servedNames   string
	speculative   string // --speculative-config
	prefixCaching bool   // --enable-prefix-caching
	vllm          vllmSettings
	notes         []string // on settings that are not met exactly

	listener net.Listener
	secure   bool         // TLS
	work     atomic.Value // the work before the model is ready, as text
	stopped  atomic.Bool  // by ossrun stop, during a download
}

func (v *serveVerb) run() (err error) {
	c, t, o := v.c, v.terminal, &v.options
	outliveReaders()
	if err := modelArgument(c); err != nil {
		return err
	}
	var upstreams []serve.Upstream
	printed := false
	if v.engine == "vllm" {
		upstreams, printed, err = v.upstreams()
	} else {
		err = v.native()
	}
	if err != nil || printed {
		return err
	}
	if v.apiKey, err = v.key(); err != nil {
		return err
	}
	secure, err := v.tls()
	if err != nil {
		return err
	}
	o.ServedNames = splitList(v.servedNames)
	o.Keep.RememberOnDisk = !c.Bool("no-remember-on-disk")
	if v.shareSessions && (!o.Keep.RememberOnDisk || o.Keep.Remember == 0) {
		return fail(exitUsage, "--share-sessions needs the disk that --no-remember-on-disk and "+
			"--remember 0 do without. Give one of them")
	}
	o.MaxBody = int64(v.maxBody) << 20
	var m *serve.Models
	if upstreams != nil {
		o.Notify = notify(t)
		m = serve.NewUpstream(c.Context, *o, upstreams...)
	} else {
		chosen := modelOptions(c, t, o)
		chosen.Progress = v.withReadiness(chosen.Progress)
		chosen.Fetch = v.fetch
		if m, err = serve.New(c.Context, chosen); err != nil {
			return err
		}
	}
	defer func() {
		failed, lost := m.Close()
		if err = errors.Join(err, failed); lost != nil {
			t.report("not everything could be kept for the next start: %s", lost)
		}
	}()
	if c.Bool("print-config") {
		return printConfig(t.Out, c, o, m)
	}
	for _, n := range append(v.notes, m.Effective().Notes...) {
		o.Notify(n)
	}
	if v.listener, err = v.listen(); err != nil {
		return err
	}
	v.secure = secure != nil
	front := v.openFront(secure)
	defer front.http.Close()
	if upstreams == nil {
		source, err := m.Find(absentModel(c, t, false))
		if v.stopped.Load() {
			return nil
		}
		if err != nil {
			return err
		}
		v.work.Store("loading the model")
		m.Choose(source)
	}
	toolset, err := v.openTools(m)
	if err != nil {
		return err
	}
	m.SetToolMemory(toolset.Memory())
	if v.answers.Keys, err = keys.Open(keys.File(), m.Store(), o.Notify); err == nil {
		err = v.refuseToBeOpen(v.listener)
	}
	if err == nil {
		err = newServer(v, m, front, toolset).run(c.Context)
	}
	return errors.Join(err, toolset.Close())
}

// outliveReaders makes writing to a closed stdout or stderr an error of that write: without a
// handler its signal ends the process.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// openTools opens the tools for requests: by default the available ones, none for other machines.
func (v *serveVerb) openTools(m *serve.Models) (*tools.Tools, error) {
	o, report := v.toolOptions, v.options.Notify
	o.Context = func() int { return m.First().ContextLength() }
	if !v.c.IsSet("tools") {
		if ip, ok := v.listener.Addr().(*net.TCPAddr); ok && !ip.IP.IsLoopback() {
			o.Names = nil
		}
		if len(o.Servers) == 0 && !v.c.IsSet("mcp-config") {
			report = func(string) {} // the defaults need no notice of missing tools
		}
	}
	return openTools(v.c.Context, o, report)
}

// modelArgument accepts the model as in vLLM: ossrun serve MODEL.
func modelArgument(c *cli.Context) error {
	switch {
	case c.NArg() == 0:
		return nil
	case c.NArg() > 1:
		return fail(exitUsage, "serve takes one model, not also %q. Run ossrun serve --help",
			c.Args().Get(1))
	case onCommandLine(c, "model") && c.String("model") != c.Args().First():
		return fail(exitUsage, "two models are named: %s and, with --model, %s. Give one",
			c.Args().First(), c.String("model"))
	}
	noteOrigin(c, "model", commandLine)
	return c.Set("model", c.Args().First())
}

type server struct {
	*serveVerb
	*serve.Models
	*front
	port  *openai.Handler
	state atomic.Value // local.State
	stop  chan bool    // from ossrun stop; true: at once
	tools *tools.Tools
}

func newServer(v *serveVerb, m *serve.Models, front *front, toolset *tools.Tools) *server {
	s := &server{serveVerb: v, Models: m, front: front, tools: toolset, stop: make(chan bool, 2)}
	s.state.Store(local.Loading)
	log, o := v.log(v.terminal.Err), m.Effective()
	a := v.answers
	a.Models, a.Log, a.Store, a.MaxBody = m, log, m.Store(), o.MaxBody
	a.ForgetPages = m.ForgetPages
	a.MaxBodies, a.MaxWaiting = m.Requests().Texts, o.Settings.MaxWaiting
	a.MaxNumSeqs = o.Settings.MaxNumSeqs
	a.Interval, a.ReasoningContent = o.StreamInterval, v.reasoningField == "reasoning_content"
	var sessions *openai.Sessions
	if v.shareSessions {
		sessions = &openai.Sessions{Claim: claimChat, Erase: eraseSession}
	}
	s.port = openai.NewHandler(openai.Options{Options: a, APIKey: v.apiKey,
		Version: build().Version, Origins: splitList(v.origins), Hosts: v.allowedHosts(),
		OwnUserOnly: !v.asksForKey() && !v.anyUser && isLocal(v.listener),
		Tools:       toolset.ForKind, Offers: toolset.Offers, Servers: toolset.Servers,
		Ready: s.ready, Sessions: sessions})
	return s
}

func (v *serveVerb) url() string { return v.urls()[0] }

// urls are the server's addresses, this machine's first.
func (v *serveVerb) urls() []string {
	if v.uds != "" {
		return []string{"unix:" + v.uds}
	}
	scheme := "http://"
	if v.secure {
		scheme = "https://"
	}
	return mapSlice(addresses(v.listener), func(address string) string { return scheme + address })
}

func (s *server) run(ctx context.Context) (err error) {
	defer s.port.Close()
	s.handler.Store(s.port)
	s.reportOthers()
	closeSocket := s.openSocket(s)
	defer closeSocket()
	ctx, end := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer end()
	loaded := make(chan error, 1)
	go func() { loaded <- s.Models.Ensure(ctx) }()
	workers.Go(func() { s.Models.ReleaseMemory(ctx, s.port.Preparing) })
	now := false
	var damaged error
	for {
		select {
		case damaged = <-s.Models.Damaged():
			now = true
		case err := <-s.failed:
			return fail(exitFailure, "the server stopped: %s", err)
		case err := <-loaded:
			if err != nil && ctx.Err() == nil {
				err = errors.Join(err, s.http.Close())
				<-s.failed
				return err
			}
			if err == nil {
				s.state.Store(local.Ready)
				s.announce()
				workers.Go(func() { s.port.TakeOver(ctx) })
				workers.Go(func() { s.port.Watch(ctx) })
			}
			loaded = nil
			continue
		case now = <-s.stop:
		case <-ctx.Done():
		}
		break
	}
	err = errors.Join(damaged, s.drain(now))
	<-s.failed
	return err
}

// drain ends the server: new requests are refused, and running ones have drainTime, or until a
// second signal. With now set they end at once.
func (s *server) drain(now bool) error {
	s.state.Store(local.Draining)
	limit, cancel := context.WithTimeout(context.Background(), drainTime)
	ctx, ignore := signal.NotifyContext(limit, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	if now {
		cancel()
	} else {
		fmt.Fprintln(s.terminal.Err,
			"ossrun: stopping; running requests have 30 s to end, a second Ctrl-C ends them now")
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		select {
		case now := <-s.stop:
			if now {
				cancel()
			}
		case <-ctx.Done():
		}
	})
	s.port.GiveUp()
	cut, err := s.Models.Drain(ctx)
	second := ctx.Err() != nil && limit.Err() == nil
	last, end := context.WithTimeout(context.Background(), closeTime)
	defer end()
	if shut := s.http.Shutdown(last); shut != nil {
		_ = s.http.Close() // connections that would not end
	}
	s.port.Await(last)
	if err != nil {
		return fail(exitFailure, "stopping the server: %s", err)
	}
	if cut > 0 {
		fmt.Fprintf(s.terminal.Err, "ossrun: %s did not end in time and got an error\n",
			term.Count(cut, "request"))
	}
	if second {
		return context.Canceled // exit code 130 after a signal
	}
	return nil
}

// shortKey is the length of a key that cannot be guessed.
const shortKey = 20

func (s *server) announce() {
	lines := s.Models.Lines() // nil: --keep-alive 0 has unloaded the model already
	person := isTerminal(s.terminal.Err)
	switch {
	case lines == nil:
	case person:
		s.showBlock(lines)
	default:
		for _, line := range lines {
			s.options.Notify(line)
		}
		if len(s.tools.Lines) > 0 {
			s.options.Notify("tools for requests: " + strings.Join(s.tools.Lines, "; "))
		}
		m := s.Models.First()
		s.terminal.report("%s on %s, context %d tokens: %s/v1", m.ID(), m.Device(),
			m.ContextLength(), s.url())
	}
	if urls := s.urls()[1:]; len(urls) > 0 {
		s.options.Notify("from other machines and containers: " + strings.Join(urls, ", "))
	}
	if n := s.answers.Keys.Len(); n > 0 {
		s.options.Notify("clients need a key: " + term.Count(n, "named one") +
			", see ossrun keys list")
	}
	switch beyond := s.isPublic(); {
	case beyond && s.apiKey != "" && len(s.apiKey) < shortKey:
		s.options.Notify(fmt.Sprintf("the key has %d characters, and other machines can try "+
			"keys: ossrun keys add NAME makes a long one", len(s.apiKey)))
	case beyond && !s.asksForKey():
		s.options.Notify("other machines can use this port without a key; ossrun keys add NAME, " +
			"or --api-key-file FILE, asks for one")
	}
	if person {
		s.showReady()
		return
	}
	// scripts for vLLM wait for these words
	fmt.Fprintln(s.terminal.Err, "ossrun: Application startup complete.")
}

func (s *server) isPublic() bool {
	ip, tcp := s.listener.Addr().(*net.TCPAddr)
	return tcp && !ip.IP.IsLoopback()
}
