// Servers' output, as the SDK must read it. A server may write banners and logs between messages,
// byte order marks, and several messages or half of one in a line. Its events may lack an end, its
// ids may be strings, and it may send any content type.
//
// What must stay true: a message is passed on once it is complete, whatever surrounds it; anything
// else never becomes an answer; a line is bounded.

package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/runtime/process"
)

// maxMessage limits the bytes of a message.
const maxMessage = 16 << 20

// messageReader extracts JSON-RPC messages from a server's output and frames each for the SDK.
type messageReader struct {
	lines      *bufio.Scanner
	begin, end string        // of a frame
	id         func() []byte // of the call to which an answer without a valid id belongs; nil: none
	forceID    bool          // every answer belongs to that call
	endpoint   bool          // the old SSE transport first sends its address
	emptyReply func() []byte // message for an output without any; nil: none

	pending    []byte // lines of an incomplete message
	framed     []byte // for the SDK to read
	hasMessage bool   // a message was found
	atEOF      bool
}

func (c *messageReader) Read(p []byte) (int, error) {
	for len(c.framed) == 0 {
		if c.lines.Scan() {
			c.addLine(c.lines.Bytes())
			continue
		}
		err := c.lines.Err()
		if errors.Is(err, bufio.ErrTooLong) && !c.atEOF {
			c.framed = c.frame(unreadable(c.id(), "it sent a message of more than 16 MB"))
		} else if err == nil && !c.atEOF {
			if c.addLine(nil); !c.hasMessage && c.emptyReply != nil {
				c.framed = c.frame(c.emptyReply())
			}
		}
		if c.atEOF = true; len(c.framed) == 0 {
			return 0, cmp.Or(err, io.EOF)
		}
	}
	n := copy(p, c.framed)
	c.framed = c.framed[n:]
	return n, nil
}

// addLine adds a line; an empty one ends the message in progress.
func (c *messageReader) addLine(line []byte) {
	text := bytes.TrimPrefix(line, []byte("\ufeff"))
	text, data := bytes.CutPrefix(text, []byte("data:"))
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if c.endpoint && data && !bytes.ContainsRune(text, '{') {
		c.endpoint = false
		c.framed = fmt.Appendf(nil, "event: endpoint\ndata: %s\n\n", bytes.TrimSpace(text))
		return
	}
	text = bytes.TrimPrefix(text, []byte(" "))
	switch {
	case c.frameMessages(text):
		c.pending = nil
	case len(text) == 0 || c.pending != nil && (text[0] == '}' || text[0] == ']'):
		c.frameMessages(append(c.pending, text...)) // it was written over several lines
		c.pending = nil
	case c.pending != nil && len(c.pending) < maxMessage:
		c.pending = append(append(c.pending, text...), ' ')
	case text[0] == '{' || text[0] == '[':
		c.pending = append(bytes.Clone(text), ' ')
	}
}

func (c *messageReader) frameMessages(text []byte) (ok bool) {
	for _, one := range objectsIn(text) {
		if message := cleanMessage(one, c.id(), c.forceID); message != nil {
			c.framed = append(c.framed, c.frame(message)...)
			ok, c.hasMessage = true, true
		}
	}
	return ok
}

func (c *messageReader) frame(message []byte) []byte {
	if message != nil {
		message = fmt.Appendf(nil, "%s%s%s", c.begin, message, c.end)
	}
	return message
}

// codeUnreadable is our error code for an answer that could not be read.
const codeUnreadable = -32098

func unreadable(id []byte, why string) []byte {
	if id == nil {
		return nil
	}
	return encode(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id),
		"error": jsonrpc.Error{Code: codeUnreadable, Message: why}})
}

// newLines splits at line feeds, carriage returns, and both.
func newLines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxMessage)
	half := false // the last line ended in a carriage return; its line feed may follow
	seen := 0     // bytes of the line already searched for its end
	s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		start := 0
		if half && len(data) > 0 {
			if half = false; data[0] == '\n' {
				start = 1
			}
		}
		if i := bytes.IndexAny(data[start+seen:], "\r\n"); i >= 0 {
			end := start + seen + i
			half, seen = data[end] == '\r', 0
			return end + 1, data[start:end], nil
		}
		if seen = len(data) - start; atEOF && seen > 0 {
			start, seen = len(data)-seen, 0
			return len(data), data[start:], nil
		}
		return start, nil, nil
	})
	return s
}

// nonNumbers matches the numbers that JSON lacks, and strings, which are left alone.
var nonNumbers = regexp.MustCompile(quotedString + `|-?\b(?:NaN|Infinity)\b`)

// objectsIn returns the objects in a line that may be messages, also those of a batch.
func objectsIn(line []byte) (list []json.RawMessage) {
	if line = bytes.TrimSpace(line); !bytes.Contains(line, []byte(`{`)) {
		return nil
	}
	if (bytes.Contains(line, []byte("NaN")) || bytes.Contains(line, []byte("Infinity"))) &&
		!json.Valid(line) {
		if repaired := nonNumbers.ReplaceAllFunc(line, func(b []byte) []byte {
			if b[0] == '"' {
				return b
			}
			return []byte("null")
		}); json.Valid(repaired) {
			line = repaired
		}
	}
	if json.Valid(line) {
		if json.Unmarshal(line, &list) == nil {
			return list
		}
		return []json.RawMessage{line}
	}
	const tries = 50 // places inside other text at which a message may begin
	for range tries {
		i := bytes.Index(line, []byte(`{"`))
		if i < 0 {
			break
		}
		var one json.RawMessage
		line = line[i:]
		d := json.NewDecoder(bytes.NewReader(line))
		if d.Decode(&one) != nil {
			line = line[1:]
			continue
		}
		list = append(list, one)
		line = line[d.InputOffset():]
	}
	return list
}

// cleanMessage returns a message as valid JSON-RPC; nil: text is no message. id is the open call's:
// it replaces an answer's id that is no number, or with all every answer's.
func cleanMessage(text json.RawMessage, id []byte, all bool) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	for _, name := range []string{"method", "error", "id"} {
		if string(m[name]) == "null" {
			delete(m, name)
		}
	}
	tagged := m["jsonrpc"] != nil
	m["jsonrpc"] = json.RawMessage(`"2.0"`)
	if m["method"] == nil {
		result, failed := m["result"], m["error"]
		if result == nil && failed == nil && (!tagged || m["id"] == nil) ||
			!tagged && m["id"] == nil {
			return nil
		}
		if failed != nil {
			delete(m, "result")
			m["error"] = rpcError(failed)
		} else {
			m["result"] = repair(result)
		}
		var written string
		if json.Unmarshal(m["id"], &written) == nil {
			if _, err := strconv.Atoi(written); err == nil {
				m["id"] = json.RawMessage(written)
			} else {
				delete(m, "id")
			}
		}
		if id != nil && (all || m["id"] == nil) {
			m["id"] = id
		}
	} else if !tagged {
		return nil
	}
	out, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	if _, err := jsonrpc.DecodeMessage(out); err != nil {
		return nil
	}
	return out
}

func rpcError(text json.RawMessage) json.RawMessage {
	if e := (jsonrpc.Error{}); json.Unmarshal(text, &e) == nil && e.Message != "" {
		return text
	}
	var parts struct{ Message string }
	message := ""
	if json.Unmarshal(text, &message) != nil {
		_ = json.Unmarshal(text, &parts) // the code may be of another type
	}
	return encode(jsonrpc.Error{Code: jsonrpc.CodeInternalError,
		Message: cmp.Or(message, parts.Message, string(text))})
}

// program is a server's process, whose pipes carry messages.
type program struct {
	command   *exec.Cmd
	in        io.WriteCloser
	lastID    atomic.Pointer[[]byte] // the id of the last call
	closeOnce sync.Once
	messageReader
}

func (p *program) Connect(ctx context.Context) (sdk.Connection, error) {
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	p.readFrom(out)
	return (&sdk.IOTransport{Reader: p, Writer: p, MaxLineLength: -1}).Connect(ctx)
}

func (p *program) readFrom(out io.Reader) {
	p.lastID.Store(new([]byte))
	p.messageReader = messageReader{lines: newLines(out), end: "\n",
		id: func() []byte { return *p.lastID.Load() }}
}

func (p *program) Write(message []byte) (int, error) {
	if id := callID(bytes.NewReader(message)); id != nil {
		p.lastID.Store(&id)
	}
	return p.in.Write(message)
}

// callID returns the id of a call, nil for other messages.
func callID(message io.Reader) []byte {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.NewDecoder(message).Decode(&m) != nil || m.Method == "" {
		return nil
	}
	return m.ID
}

// Close ends the program: by the end of its input, by a signal, by force.
func (p *program) Close() error {
	p.closeOnce.Do(func() {
		_ = p.in.Close() // the program may have ended
		exited := make(chan struct{})
		go func() {
			_ = p.command.Wait() // any exit status is fine
			close(exited)
		}()
		for _, force := range []func(){
			func() { _ = p.command.Process.Signal(syscall.SIGTERM) },
			func() { process.End(p.command) },
		} {
			select {
			case <-exited:
				return
			case <-time.After(time.Second):
				force()
			}
		}
		<-exited
	})
	return nil
}

// repairedHTTP gives the SDK a server's HTTP responses as a stream of messages.
type repairedHTTP struct {
	http.RoundTripper
	isSSE bool // the old SSE transport
}

// refusal is an HTTP answer without an MCP message.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("HTTP %d: %s", r.status, cmp.Or(r.text, http.StatusText(r.status)))
}

const maxRefusal = 300 // characters

func (a repairedHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	var id []byte
	if r.Method == http.MethodPost && r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			id = callID(body)
		}
	}
	response, err := a.RoundTripper.RoundTrip(r)
	if err != nil || response.StatusCode/100 == 3 || r.Method == http.MethodDelete {
		return response, err
	}
	if r.Header.Get("Mcp-Session-Id") != "" {
		response.Header.Del("Mcp-Session-Id") // a different id would end the session
	}
	messages := &messageReader{lines: newLines(response.Body), begin: "data: ", end: "\n\n",
		endpoint: a.isSSE && r.Method == http.MethodGet,
		id:       func() []byte { return id }, forceID: id != nil}
	switch isOK := response.StatusCode/100 == 2; {
	case r.Method == http.MethodGet && !isOK:
		return response, nil
	case !isOK && id == nil: // a refused notification is harmless
		response.StatusCode = http.StatusAccepted
		return response, nil
	case !isOK:
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // it may be cut short
		messages.lines = newLines(bytes.NewReader(text))
		message, _ := io.ReadAll(messages)
		if len(message) == 0 || a.isSSE {
			line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
			if strings.HasPrefix(line, "<") { // an HTML page
				line = ""
			}
			return nil, &refusal{response.StatusCode, truncate(line, maxRefusal, "...")}
		}
		messages.lines, messages.atEOF = newLines(bytes.NewReader(message)), false
	case id == nil && r.Method == http.MethodPost || a.isSSE && r.Method == http.MethodPost:
		return response, nil
	case response.StatusCode == http.StatusAccepted: // the answer arrives in the notice stream
		messages.emptyReply = func() []byte { <-r.Context().Done(); return nil }
	case id != nil:
		kind := cmp.Or(response.Header.Get("Content-Type"), "of no type")
		messages.emptyReply = func() []byte {
			if strings.HasPrefix(kind, "text/event-stream") {
				return unreadable(id, "its stream ended without an answer")
			}
			return unreadable(id, "its answer is not of MCP ("+kind+")")
		}
	}
	response.ContentLength = -1
	if id != nil || a.isSSE { // else it is a notice stream, or empty
		response.StatusCode = http.StatusOK
		response.Header.Set("Content-Type", "text/event-stream")
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{messages, response.Body}
	return response, nil
}
