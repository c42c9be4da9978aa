package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/serve"
)

// TestFolded: no line is wider, no word is lost, and continuation lines start in their own column.
func TestFolded(t *testing.T) {
	text := "gpus    RTX 4090: sm_89, 24564 MiB, 45 °C\n" +
		"        H200: sm_90\n" +
		"models  20b: not here\n" +
		"          GPUs: layers 0-23 on GPU 0\n" +
		"\n" +
		"config  /a/very/long/path/that/is/one/word (read)\n"
	want := "gpus    RTX 4090: sm_89,\n" +
		"          24564 MiB, 45\n" +
		"          °C\n" +
		"        H200: sm_90\n" +
		"models  20b: not here\n" +
		"          GPUs: layers\n" +
		"            0-23 on GPU\n" +
		"            0\n" +
		"\n" +
		"config  /a/very/long/path/that/is/one/word\n" +
		"          (read)\n"
	if got := foldLines(text, 24); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for width := 1; width < 60; width++ {
		got := foldLines(text, width)
		if a, b := strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(text),
			" "); a != b {
			t.Errorf("%d columns: %q", width, a)
		}
		for line := range strings.Lines(got) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width &&
				strings.Contains(strings.TrimLeft(line, " "), " ") &&
				!strings.Contains(strings.TrimLeft(line, " "), "  ") {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
		}
	}
}

// The words for memory and speed, which doctor and the first run share.
func TestWordsForTheMachine(t *testing.T) {
	const needs = 13_100_000_000
	for want, got := range map[string]string{
		"needs 14.6 GB free (13.1 GB for the model, 1.5 GB kept for the system)": serve.MemoryNeeded(
			needs, 20e9, 24e9),
		"needs 14.6 GB free (13.1 GB for the model, 1.5 GB kept for the system); close programs " +
			"that use 1.0 GB": serve.MemoryNeeded(needs, 13_556_000_000, 24e9),
		"needs 14.6 GB free (13.1 GB for the model, 1.5 GB kept for the system); there are " +
			"8.2 GB in all": serve.MemoryNeeded(needs, 5e9, 8_200_000_000),
		"up to 8":    speeds(0, 7.9),
		"3 to 8":     speeds(3.1, 7.9),
		"8":          speeds(7.6, 7.9),
		"0.4 to 0.9": speeds(0.4, 0.91),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// No message has the words of a library for a broken text or a wait.
func TestCausesAreInPlainWords(t *testing.T) {
	for _, broken := range []string{`{"a":`, `{"a" 1}`, "[1,]", "x", "{\"a\":\"\n\"}", `{'a':1}`,
		`"\q"`, "", `{"a":1}}`, "nul", "01", `{"a":tru}`} {
		var log strings.Builder
		Terminal{Err: &log}.report("FILE is not JSON: %s", json.Unmarshal([]byte(broken), new(any)))
		if text := log.String(); strings.Contains(text, "invalid character") ||
			strings.Contains(text, "JSON input") || strings.Contains(text, "looking for") {
			t.Errorf("%q: %s", broken, text)
		}
	}
	var log strings.Builder
	Terminal{Err: &log}.report("read x: %s", io.ErrUnexpectedEOF)
	Terminal{Err: &log}.report("read x: %s", io.EOF)
	Terminal{Err: &log}.report("ask x: %s", context.DeadlineExceeded)
	// as the libraries really say it
	closed := hosttest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := closed.Addr().String()
	hosttest.Check(t, closed.Close())
	_, refused := http.Get("http://" + address)
	_, direct := net.Dial("tcp", address)
	_, socket := net.Dial("unix", filepath.Join(t.TempDir(), "none.sock"))
	hurried, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	_, late := (&net.Dialer{}).DialContext(hurried, "tcp", address)
	unknown := &url.Error{Op: "Get", URL: "http://x.invalid/v1", Err: &net.OpError{Op: "dial",
		Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x.invalid", Server: "1.2.3.4:53",
			IsNotFound: true}}}
	silent := &net.DNSError{Err: "i/o timeout", Name: "x.invalid", Server: "1.2.3.4:53"}
	for _, c := range []struct {
		err  error
		want string
	}{{refused, "connection refused"}, {direct, "connection refused"},
		{socket, "no such file or directory"}, {late, "no answer came in time"},
		{unknown, "the name is not known"}, {silent, "no answer came in time"}} {
		var log strings.Builder
		Terminal{Err: &log}.report("ask y: %s", c.err)
		if log.String() != "ossrun: ask y: "+c.want+"\n" {
			t.Errorf("%v: %s", c.err, &log)
		}
	}
	if log.String() != "ossrun: read x: it ended too early\nossrun: read x: it ended too early\n"+
		"ossrun: ask x: no answer came in time\n" {
		t.Errorf("%s", &log)
	}
}
