// The listener of ossrun serve and its access: an address or a Unix socket, TLS, the key, the
// accepted host names and web origins.
//
// What must stay true: a port open to other machines without a key is reported, and refused where a
// file that may ask for a key cannot be read; a key need not be on the command line, which every
// process of this machine can read.

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
)

type portFlags struct {
	host, uds          string
	anyUser            bool
	port               int
	certFile, keyFile  string
	apiKey, apiKeyFile string
	origins, hosts     string
	maxBody            int // MiB
	logLevel           string
	logFormat          string
	reasoningField     string
	answers            answer.Options
}

func (p *portFlags) flags() []cli.Flag {
	*p = portFlags{host: "127.0.0.1", port: 8000, maxBody: serve.StandardBody >> 20,
		logLevel: "info", logFormat: "auto", reasoningField: "reasoning"}
	return flagTable(groupListen,
		textFlag(&p.host, "host"),
		intFlag(&p.port, "port"),
		textFlag(&p.uds, "uds"),
		switchFlag(&p.anyUser, "any-user"),
		inputFlag(&p.certFile, "ssl-certfile"),
		inputFlag(&p.keyFile, "ssl-keyfile"),
		inputFlag(&p.apiKeyFile, "api-key-file"),
		textFlag(&p.apiKey, "api-key"),
		textFlag(&p.origins, "allowed-origins"),
		textFlag(&p.hosts, "allowed-hosts"),
		minFlag(&p.maxBody, "max-body", 1),
		enumFlag(&p.logLevel, "log-level", "debug", "info", "warning", "error"),
		enumFlag(&p.logFormat, "log-format", "auto", "text", "json"),
		switchFlag(&p.answers.LogPrompts, "log-prompts"),
		switchFlag(&p.answers.IgnoreImages, "ignore-images"),
		enumFlag(&p.reasoningField, "reasoning-field", "reasoning", "reasoning_content"))
}

// isLocal tells whether only programs of this machine reach a listener.
func isLocal(l net.Listener) bool {
	address, tcp := l.Addr().(*net.TCPAddr)
	return !tcp || address.IP.IsLoopback()
}

func (p *portFlags) log(to io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: map[string]slog.Level{"debug": slog.LevelDebug,
		"warning": slog.LevelWarn, "error": slog.LevelError}[p.logLevel]}
	switch {
	case p.logFormat == "json":
		return slog.New(slog.NewJSONHandler(to, o))
	case p.logFormat == "auto" && isTerminal(to):
		return slog.New(requestLines{to, o.Level.Level()})
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// key is the key that clients must send, or "".
func (p *portFlags) key() (string, error) {
	if p.apiKeyFile == "" {
		return cmp.Or(p.apiKey, os.Getenv("OSSRUN_API_KEY"), os.Getenv("VLLM_API_KEY")), nil
	}
	if p.apiKey != "" {
		return "", fail(exitUsage, "--api-key and --api-key-file name two keys. Give one")
	}
	b, err := mapping.ReadText(p.apiKeyFile, mapping.MaxSettings)
	if err != nil {
		return "", fail(exitUsage, "--api-key-file %s", err)
	}
	key := strings.TrimSpace(string(b))
	if key == "" {
		return "", fail(exitUsage, "--api-key-file %s is empty", p.apiKeyFile)
	}
	return key, nil
}

func (p *portFlags) asksForKey() bool { return p.apiKey != "" || p.answers.Keys.NeedsKey() }

// refuseToBeOpen refuses to serve others without a key, if a default file that this user may not
// read could ask for one.
func (v *serveVerb) refuseToBeOpen(l net.Listener) error {
	if v.asksForKey() || isLocal(l) && !v.anyUser {
		return nil
	}
	files := []string{keys.File()}
	if !v.c.IsSet("config") {
		files = append(files, defaultConfigPath())
	}
	for _, path := range files {
		if _, err := mapping.ReadText(path, mapping.MaxSettings); errors.Is(err, fs.ErrPermission) {
			return fail(exitUsage, "others could use this port without a key, but %s may ask for "+
				"one and cannot be read. Give --api-key-file FILE, or set XDG_CONFIG_HOME to a "+
				"folder that this user can read", path)
		}
	}
	return nil
}

func (p *portFlags) allowedHosts() []string {
	names := append(splitList(p.hosts), p.host)
	if ip, err := netip.ParseAddr(p.host); err == nil && ip.IsUnspecified() {
		if hostname, err := os.Hostname(); err == nil {
			names = append(names, hostname)
		}
	}
	return names
}

// addresses are the addresses that reach a listener; for a wildcard, all of this machine's,
// loopback first.
func addresses(l net.Listener) []string {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsUnspecified() {
		return []string{l.Addr().String()}
	}
	list := []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(address.Port))}
	interfaces, _ := net.InterfaceAddrs() // on an error only the loopback
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			list = append(list, net.JoinHostPort(n.IP.String(), strconv.Itoa(address.Port)))
		}
	}
	return list
}

func (p *portFlags) listen() (net.Listener, error) {
	if p.uds != "" {
		mode := os.FileMode(0o600)
		if p.anyUser {
			mode = 0o666
		}
		return listenUnix(p.uds, mode)
	}
	return listen(p.host, p.port)
}

// tls is nil for plain HTTP.
func (p *portFlags) tls() (*tls.Config, error) {
	if p.certFile == "" && p.keyFile == "" {
		return nil, nil
	}
	if p.certFile == "" || p.keyFile == "" {
		return nil, fail(exitUsage, "TLS needs both --ssl-certfile and --ssl-keyfile")
	}
	certificate, err := mapping.ReadText(p.certFile, mapping.MaxSettings)
	if err != nil {
		return nil, fail(exitUsage, "--ssl-certfile %s", err)
	}
	key, err := mapping.ReadText(p.keyFile, mapping.MaxSettings)
	if err != nil {
		return nil, fail(exitUsage, "--ssl-keyfile %s", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fail(exitUsage, "--ssl-certfile and --ssl-keyfile: %s",
			strings.TrimPrefix(err.Error(), "tls: "))
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// listenUnix creates the socket, replacing one that an earlier server left.
func listenUnix(path string, mode os.FileMode) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		info, stat := os.Lstat(path)
		if conn, dial := net.Dial("unix", path); dial == nil {
			conn.Close()
			return nil, fail(exitPort, "a server listens on %s already", path)
		}
		if stat == nil && info.Mode()&os.ModeSocket != 0 && os.Remove(path) == nil {
			l, err = net.Listen("unix", path)
		}
	}
	if err == nil { // regardless of umask: on some systems write permission allows connecting
		if err = os.Chmod(path, mode); err != nil {
			err = errors.Join(err, l.Close())
		}
	}
	if err != nil {
		return nil, fail(exitPort, "cannot listen on %s: %s", path, rootCause(err))
	}
	return l, nil
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
		return nil, fail(exitPort,
			"port %d on %s is in use%s. Stop that program, or choose another --port",
			port, host, whoListens(port))
	case errors.Is(err, os.ErrPermission):
		return nil, fail(exitPort,
			"port %d on %s is not allowed for this user. Choose a --port above 1023",
			port, host)
	}
	return nil, fail(exitPort, "cannot listen on %s: %s", address, rootCause(err))
}

// rootCause unwraps net errors, whose wrappers repeat the address.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if unknown, ok := err.(*net.DNSError); ok {
			return errors.New(unknown.Err)
		}
		if inner == nil {
			return err
		}
		err = inner
	}
}

// openSocket creates the socket for other processes and returns its closer; it is optional.
func (v *serveVerb) openSocket(h local.Host) (closeIt func()) {
	folder, err := local.Folder()
	var l net.Listener
	if err == nil {
		l, err = local.Listen(folder)
	}
	if err != nil {
		v.terminal.report("chats cannot join, and ossrun ps does not see it: %s", rootCause(err))
		return func() {}
	}
	return local.Background(l, h)
}

// reportOthers reports that another process has the weights in memory.
func (s *server) reportOthers() {
	if s.vllm.upstream != "" {
		return // this process loads no weights
	}
	list, _ := local.Running(s.c.Context) // on an error none
	for _, peer := range list {
		for _, m := range peer.Models {
			if m.Name == s.Models.First().ID() && m.State != string(serve.Unloaded) {
				where := "at " + peer.URL
				if peer.Kind == local.Chat {
					where = "in a chat"
				}
				s.terminal.report("%s is already running %s (PID %d). Loading a second copy",
					m.Name, where, peer.PID)
			}
		}
	}
}

// whoListens names this user's server on a port, if any.
func whoListens(port int) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list, _ := local.Running(ctx) // on an error none
	for _, s := range list {
		if strings.HasSuffix(s.URL, ":"+strconv.Itoa(port)) {
			return fmt.Sprintf(" (ossrun stop %d does)", s.PID)
		}
	}
	return ""
}

// Status is the answer to ossrun ps.
func (s *server) Status() local.Status {
	st := local.StatusOf(s.Models, build().Version)
	st.URL, st.State = s.url(), s.state.Load().(local.State)
	if st.State == local.Ready && s.Models.Ready() != nil {
		st.State = local.Unreachable
	}
	return st
}

// Stop handles ossrun stop.
func (s *server) Stop(now bool) {
	select {
	case s.stop <- now:
	default: // two requests are enough
	}
}
