// The program as tests have it: in this process, as a process with folders of its own, in a
// pseudo-terminal, and as a server. The screen is read through the small terminal emulator of
// ui/chat/screentest.

package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/adrg/xdg"
	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/ui/chat/screentest"
)

// testLease names the variable that shortens the lease of a test's server, testDemo the one with
// the file of an equal demo that is unpacked at once: half a second less for each process.
const testLease, testDemo = "OSSRUN_TEST_LEASE", "OSSRUN_TEST_DEMO"

func TestMain(m *testing.M) {
	testscript.Main(withDemo{m}, map[string]func(){
		"ossrun": func() {
			xdg.Reload()
			if pack, err := os.ReadFile(os.Getenv(testDemo)); err == nil {
				assets.DemoPack = pack
			}
			expectedRates = quickRates
			grammar.Prepare = func() {} // half of what a short process computes
			if lease, err := time.ParseDuration(os.Getenv(testLease)); err == nil {
				answer.DefaultSilence = lease
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			os.Exit(Run(ctx, append([]string{"ossrun"}, os.Args[1:]...),
				Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
		},
		"get": func() { // the body of a URL, for scripts that imitate agents
			response, err := http.Get(os.Args[1])
			if err == nil {
				_, err = io.Copy(os.Stdout, response.Body)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// quickRates replaces a second of measuring in each doctor but TestDoctorJSON's.
func quickRates(_ context.Context, _ engine.Backend, list []models.Spec, _ engine.Settings) (
	[]float64, error) {
	return mapSlice(list, func(models.Spec) float64 { return 0.01 }), nil
}

// storedPack is an equal pack of bytes as they are, and zeros.
func storedPack(packed []byte) ([]byte, error) {
	memory, err := pack.Unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	number := func(n int) { _ = binary.Write(z, binary.LittleEndian, uint64(n)) }
	_, _ = z.Write([]byte("OSSPACK1")) // writes to a buffer never fail
	number(len(memory.Bytes))
	_, _ = z.Write(memory.SHA256[:])
	for part := range slices.Chunk(memory.Bytes, 1<<10) {
		if bytes.Count(part, []byte{0}) == len(part) {
			_, _ = z.Write([]byte{1})
			number(len(part))
			continue
		}
		_, _ = z.Write([]byte{0})
		number(len(part))
		_, _ = z.Write(part)
	}
	err = z.Close()
	return b.Bytes(), err
}

// withDemo runs the tests, then ends the server that they shared.
type withDemo struct{ *testing.M }

var embeddedDemo = assets.DemoPack

func (m withDemo) Run() int {
	measuredRates, expectedRates = expectedRates, quickRates
	stored, err := storedPack(assets.DemoPack)
	folder, wrong := os.MkdirTemp("", "ossrun-demo")
	file := filepath.Join(folder, "pack")
	if err = errors.Join(err, wrong, os.WriteFile(file, stored, 0o600),
		os.Setenv(testDemo, file)); err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	assets.DemoPack = stored
	code := m.M.Run()
	if s := sharedDemo.served; s != nil {
		_ = s.cmd.Process.Signal(os.Interrupt)
		<-s.done
		if fault := s.fault(); fault != "" {
			fmt.Fprintln(os.Stderr, "the shared server:", fault)
			code = max(code, 1)
		}
	}
	return code
}

var measuredRates = expectedRates

// runHere runs a command line in this process, without a terminal.
func runHere(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Run(ctx, append([]string{"ossrun"}, args...),
		Terminal{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// write makes a file of this user's, which may be a script, and gives its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// happens asks until ok holds; false after two minutes, which only what hangs takes.
func happens(ok func() bool) bool {
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// heard is what a program writes, read while it runs.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func (h *heard) until(t *testing.T, pattern string) string {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	var found []string
	if !happens(func() bool {
		found = wanted.FindStringSubmatch(h.String())
		return found != nil
	}) {
		t.Fatalf("no %s in %s", pattern, h)
	}
	return found[len(found)-1]
}

// ossrunIn is the program with a home folder of its own.
func ossrunIn(home string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	program := filepath.Join(home, "bin", "ossrun") // TestMain is the program of that name
	if err = errors.Join(err, os.MkdirAll(filepath.Dir(program), 0o700),
		os.MkdirAll(filepath.Join(home, "run"), 0o700)); err != nil {
		return nil, err
	}
	if err := os.Symlink(self, program); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+filepath.Join(home, "run"),
		"HF_HUB_CACHE="+filepath.Join(home, "hub"), "NO_COLOR=", "TERM=xterm-256color")
	return cmd, nil
}

// ossrun is the program with a home folder of this test, and variables as NAME=VALUE.
func ossrun(t *testing.T, variables []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd, err := ossrunIn(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, variables...)
	return cmd
}

// sameHome is another command line in the home of a first one.
func sameHome(first *exec.Cmd, args ...string) *exec.Cmd {
	cmd := exec.Command(first.Path, args...)
	cmd.Env = first.Env
	return cmd
}

func homeOf(cmd *exec.Cmd) string { return filepath.Dir(filepath.Dir(cmd.Path)) }

// terminal is a program in a pseudo-terminal and its screen.
type terminal struct {
	t      *testing.T
	pty    *os.File
	mu     sync.Mutex
	screen *screentest.Screen
	all    heard         // what the program wrote, escape sequences too
	over   chan struct{} // closed when all that the program wrote is on the screen
}

func startInTerminal(t *testing.T, width, height uint16, args ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	return runInTerminal(t, width, height, ossrun(t, nil, args...))
}

func runInTerminal(t *testing.T, width, height uint16, cmd *exec.Cmd) (*terminal, *exec.Cmd) {
	t.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: height, Cols: width})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, pty: f, screen: screentest.New(int(width), int(height)),
		over: make(chan struct{})}
	t.Cleanup(func() { f.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() {
		defer close(term.over)
		buf := make([]byte, 32<<10)
		for {
			n, err := f.Read(buf)
			term.mu.Lock()
			_, _ = term.screen.Write(buf[:n])
			term.mu.Unlock()
			_, _ = term.all.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return term, cmd
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.screen.String()
}

// until waits for a screen on which ready holds, and fails the test, naming the awaited thing, if
// there is none.
func (term *terminal) until(awaited string, ready func(screen string) bool) (text string) {
	term.t.Helper()
	if !happens(func() bool { text = term.text(); return ready(text) }) {
		term.t.Fatalf("%s never came; the screen is:\n%s", awaited, text)
	}
	return text
}

// wait waits until the screen shows all of want.
func (term *terminal) wait(want ...string) string {
	term.t.Helper()
	return term.until(strings.Join(want, " and "), func(screen string) bool {
		for _, w := range want {
			if !strings.Contains(screen, w) {
				return false
			}
		}
		return true
	})
}

// printed waits for a line that the program's next screen may cover before anyone looks.
func (term *terminal) printed(line string) {
	term.t.Helper()
	if !happens(func() bool { return strings.Contains(term.all.String(), line) }) {
		term.t.Fatalf("%s was never printed; the screen is:\n%s", line, term.text())
	}
}

func (term *terminal) send(keys string) {
	term.t.Helper()
	if _, err := term.pty.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// served is a running ossrun serve.
type served struct {
	t     *testing.T
	home  string
	url   string
	cmd   *exec.Cmd
	err   *heard
	web   *http.Client
	done  chan struct{} // closed when the process has ended
	ended bool          // by the test

	seen func(ttft, total time.Duration, tokens int) // of each answer, or nil
}

// serveDemo starts ossrun serve --model demo and waits until it is ready. It is stopped, and must
// end well, with the test.
func serveDemo(t *testing.T, args ...string) *served {
	t.Helper()
	return serveIn(t, t.TempDir(), nil, args...)
}

// serveIn is serveDemo in a home folder, which may be that of an earlier server, with variables.
func serveIn(t *testing.T, home string, variables []string, args ...string) *served {
	t.Helper()
	s, err := startDemo(home, variables, args...)
	if err != nil {
		t.Fatal(err)
	}
	s.t = t
	t.Cleanup(func() {
		if s.web.CloseIdleConnections(); !s.ended {
			_ = s.cmd.Process.Signal(os.Interrupt)
		}
		<-s.done
		if fault := s.fault(); fault != "" {
			t.Error(fault)
		}
	})
	return s
}

// fault is the error of a server that has ended, or "".
func (s *served) fault() string {
	said := s.err.String()
	if !s.ended && s.cmd.ProcessState.ExitCode() != 0 || strings.Contains(said, "DATA RACE") {
		return fmt.Sprintf("it ended with %v; its last words: %s", s.cmd.ProcessState,
			said[max(0, len(said)-4000):])
	}
	return ""
}

// sharedDemo is one server for the tests that only ask it.
var sharedDemo struct {
	sync.Once
	*served
	fault error
}

func askDemo(t *testing.T) *served {
	t.Helper()
	sharedDemo.Do(func() {
		home := filepath.Dir(os.Getenv(testDemo))
		sharedDemo.served, sharedDemo.fault = startDemo(home, nil)
	})
	if sharedDemo.fault != nil {
		t.Fatal(sharedDemo.fault)
	}
	s := *sharedDemo.served
	s.t = t
	return &s
}

func startDemo(home string, variables []string, args ...string) (*served, error) {
	cmd, err := ossrunIn(home, append([]string{"serve", "demo", "--device", "cpu", "--port", "0"},
		args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, variables...)
	s := &served{home: home, done: make(chan struct{}), cmd: cmd, err: &heard{},
		web: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}}
	cmd.Stderr = s.err
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.done)
		_ = cmd.Wait() // ProcessState has it
	}()
	if !happens(func() bool {
		list, err := local.Servers(context.Background(), filepath.Join(home, "run", "ossrun"))
		if err != nil || len(list) != 1 || list[0].State != local.Ready ||
			!strings.Contains(s.err.String(), "ossrun: Application startup complete.") {
			return !s.running()
		}
		s.url = list[0].URL
		return true
	}) || s.url == "" {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("the server did not become ready; its words: %s", s.err)
	}
	return s, nil
}

func (s *served) running() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// end ends a server by a signal and waits for it; the test looks at its exit code.
func (s *served) end(by os.Signal) (code int) {
	s.t.Helper()
	s.ended = true
	if err := s.cmd.Process.Signal(by); err != nil {
		s.t.Fatal(err)
	}
	<-s.done
	return s.cmd.ProcessState.ExitCode()
}

// eventually waits until ok holds.
func (s *served) eventually(what string, ok func() bool) {
	s.t.Helper()
	if !happens(ok) {
		s.t.Fatalf("it never came that %s; %s", what, s.err)
	}
}

// with is the program's own answer on a command line in the home of a server.
func (s *served) with(args ...string) string {
	s.t.Helper()
	out, err := sameHome(s.cmd, args...).Output()
	if err != nil {
		s.t.Fatalf("ossrun %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// send asks with headers, a name and its value in turn, and reads the whole answer.
func (s *served) send(method, path, body string, headers ...string) (r *http.Response,
	text string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path,
		strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Host = request.Header.Get("Host")
	if r, err = s.web.Do(request); err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r, string(all)
}

// as asks a server with a key.
func (s *served) as(key, method, path, body string) (status int, text string) {
	s.t.Helper()
	r, text := s.send(method, path, body, "Authorization", "Bearer "+key)
	return r.StatusCode, text
}

// get reads an object, which has to be there, and post one that a body asks for.
func (s *served) get(path string, into any) { s.t.Helper(); s.read("GET", path, "", into) }

func (s *served) post(path, body string, into any) *http.Response {
	s.t.Helper()
	return s.read("POST", path, body, into)
}

func (s *served) read(method, path, body string, into any) *http.Response {
	s.t.Helper()
	r, text := s.send(method, path, body)
	if err := json.Unmarshal([]byte(text), into); err != nil || r.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: status %d, %v: %s", method, path, r.StatusCode, err, text)
	}
	return r
}

// status is that of a GET, 0 for none.
func (s *served) status(path string) int {
	resp, err := s.web.Get(s.url + path)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// metric sums the values of a metric.
func (s *served) metric(name string) float64 {
	s.t.Helper()
	_, text := s.send("GET", "/metrics", "")
	sum, found := 0.0, false
	for _, m := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+
		`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			s.t.Fatal(err)
		}
		sum, found = sum+v, true
	}
	if !found {
		s.t.Fatalf("there is no metric %s", name)
	}
	return sum
}

// chatReply is what these tests read of a chat completion.
type chatReply struct {
	Usage struct {
		Prompt    int `json:"prompt_tokens"`
		Generated int `json:"completion_tokens"`
		Details   struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Choices []struct {
		Finish  string `json:"finish_reason"`
		Message struct {
			Content   string
			Reasoning string
			ToolCalls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
}
