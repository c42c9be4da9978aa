//go:build unix

// One-shot answers as a person meets them: stdout and stderr on one screen.

package cli

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/scripttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/ui/chat/screentest"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const onceScript = "[[think The person asks about moons. I name the two of Mars, and say in one " +
	"sentence what they are.\n\nThat is enough.]] [[say Mars has **two** moons:\n\n1. *Phobos*, " +
	"which is the larger one and circles its planet three times a day,\n2. *Deimos*.\n\nBoth are " +
	"small and dark, and may once have been asteroids.]]"

// atBegin stops an answer before its first event.
const atBegin = "-"

// stopAt passes an answer on up to the end of a text, then does what stop says. The event with the
// text is cut there, so that the batches of the port do not matter.
type stopAt struct {
	http.ResponseWriter
	text string
	stop func()
}

func (s *stopAt) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stopAt) Write(b []byte) (int, error) {
	at, rest := bytes.Index(b, []byte(s.text)), b
	if s.text == "" || at < 0 && s.text != atBegin {
		return s.ResponseWriter.Write(b)
	}
	if s.text != atBegin {
		begin := bytes.LastIndex(b[:at], []byte("data: "))
		text := bytes.LastIndex(b[:at], []byte(`":"`)) + len(`":"`)
		at += len(s.text)
		quote := at + bytes.IndexByte(b[at:], '"')
		end := quote + bytes.Index(b[quote:], []byte("\n\n")) + 2
		if _, err := s.ResponseWriter.Write(slices.Concat(b[:at], b[quote:end])); err != nil {
			return 0, err
		}
		rest = slices.Concat(b[begin:text], b[at:])
	}
	s.text = ""
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	s.stop()
	_, err := s.ResponseWriter.Write(rest)
	return len(b), err
}

// scriptedPort is the port over a scripted model, which stops its answers at a text.
func scriptedPort(t *testing.T, text string, stop func()) string {
	store := records.NewStore()
	m := scripttest.New(0, store)
	handler := openai.NewHandler(openai.Options{Options: answer.Options{
		Models: scripttest.Models(m), Store: store, Interval: 1}, Version: "0.0.0-script"})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w = &stopAt{w, text, stop}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.Close(); handler.Close(); m.Close() })
	return s.URL
}

// Each combination of flags at three widths, of a whole answer and of one that the server cuts in
// the reasoning or the answer: what is on the screen in the end is a file that a person reads.
func TestOneShotScreens(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ name, text string }{{"whole", ""},
		{"cut-reasoning", "sentence"}, {"cut-answer", "planet"}} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			url := scriptedPort(t, of.text, func() { panic(http.ErrAbortHandler) })
			var all strings.Builder
			for _, flags := range []string{"", "--show-reasoning", "--plain --show-reasoning",
				"--json", "--json --show-reasoning", "--theme none --show-reasoning", "TERM=dumb"} {
				for _, width := range []uint16{40, 80, 200} {
					if of.text != "" && (width != 80 || strings.Contains(flags, "--json")) {
						continue
					}
					args := append(strings.Fields(flags), onceScript)
					cmd := ossrun(t, nil, "chat", "--endpoint", url, "--no-history")
					if cmd.Args = append(cmd.Args, args...); flags == "TERM=dumb" {
						cmd.Args = slices.Delete(cmd.Args, len(cmd.Args)-2, len(cmd.Args)-1)
						cmd.Env = append(cmd.Env, flags)
					}
					term, _ := runInTerminal(t, width, 24, cmd)
					<-term.over
					_ = cmd.Wait() // the screen has why
					screen := regexp.MustCompile(`127.0.0.1:\d{5}`).ReplaceAllString(
						strings.TrimRight(term.text(), "\n"), "127.0.0.1:PPPPP")
					fmt.Fprintf(&all, "== %d columns, ossrun chat %s PROMPT\n%s\n\n", width, flags,
						screen)
					if strings.Contains(flags, "plain") && strings.Contains(term.all.String(), "\x1b") {
						t.Errorf("%s repaints: %q", flags, &term.all)
					}
				}
			}
			goldenScreen(t, "once-"+of.name, all.String())
		})
	}
}

// goldenScreen compares a screen with its file.
func goldenScreen(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".screen")
	if *updateScreens {
		write(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// A server that stops in the prompt, the reasoning or the answer: the progress line is shown while
// nothing is written, and is gone in the end.
func TestSlowOneShotScreens(t *testing.T) {
	t.Parallel()
	for text, shown := range map[string]bool{atBegin: true, "sentence": false, "planet": false} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			stopped, release := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() { close(stopped); <-release })
			url := scriptedPort(t, text, once)
			resume := sync.OnceFunc(func() { close(release) })
			t.Cleanup(resume)
			cmd := ossrun(t, nil, "chat", "--endpoint", url, "--no-history", "--show-reasoning",
				onceScript)
			term, _ := runInTerminal(t, 40, 24, cmd)
			<-stopped
			last := regexp.MustCompile(`(\w+), [1-9]\d* s\. Ctrl\+C stops\.\s*$`)
			if shown {
				term.until("the progress line", last.MatchString)
			} else {
				term.wait(text)
			}
			resume()
			<-term.over
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			end := strings.TrimRight(term.text(), "\n")
			want, err := os.ReadFile(filepath.Join("testdata", "once-whole.screen"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(want), "40 columns, ossrun chat --show-reasoning PROMPT\n"+end+"\n") {
				t.Errorf("a slow answer ends as\n%s", end)
			}
		})
	}
}

// Whatever texts follow each other in whatever pieces, a terminal ends with each of their rows
// once, in order; so does a screen whose stdout is another one's or a file.
func TestTextsInTurn(t *testing.T) {
	kinds := map[onceText]string{reasoningText: "thought", answerText: "answer", noteText: "note"}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		width := []uint16{40, 80, 200}[round%3]
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(master, &pty.Winsize{Rows: 60, Cols: width}); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TERM", "xterm")
		screen, read := screentest.New(int(width), 60), make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(screen, master)
		}()
		var file strings.Builder
		to := Terminal{Out: tty, Err: tty}
		piped := round%4 == 3
		if piped {
			to.Out = &file
		}
		s := newOnceScreen(to, nil, term.Palette{}, round%5 == 4)
		var want []string
		answers, last := "", noText
		for i := range 2 + r.IntN(5) {
			kind := onceText(1 + r.IntN(3))
			text := fmt.Sprintf("The %s %d is %s long.", kinds[kind], i,
				strings.Repeat("word ", r.IntN(40)))
			if kind == last && kind != noteText {
				text = " " + text // it continues a text
			}
			if last = kind; kind == answerText {
				answers += text
			}
			if kind != answerText || !piped {
				want = append(want, strings.Fields(text)...)
			}
			if kind == noteText {
				s.note(text)
				s.wait("Running a tool")
				s.drawWait(int(width), 0) // until the next text
				last = noText
				continue
			}
			for text != "" {
				n := min(1+r.IntN(30), len(text))
				if err := s.push(kind, text[:n]); err != nil {
					t.Fatal(err)
				}
				s.wait("Waiting")
				s.drawWait(int(width), 0) // not in a text
				text = text[n:]
			}
		}
		if err := s.end(); err != nil {
			t.Fatal(err)
		}
		s.close()
		tty.Close()
		<-read
		master.Close()
		got := strings.Fields(screen.String())
		if round%5 == 4 { // its words may be broken
			got, want = []string{strings.Join(got, "")}, []string{strings.Join(want, "")}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d: the screen has\n%s\nwant %q", round, screen, want)
		}
		if piped && file.String() != answers && file.String() != answers+"\n" {
			t.Errorf("%d: the file has %q, want %q", round, &file, answers)
		}
	}
}
