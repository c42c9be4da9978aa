// The messages of an animal, over pipes and over HTTP.

package zootest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// wire describes an animal's messages in zoo.json. ID becomes the request's id, RESULT its method's
// result; TEXT a framed message, HEAD and TAIL its halves.
type wire struct {
	First                            string // written before anything else
	Frame, Kind                      string // of a message, its Content-Type
	Endpoint                         string // the first event of the old SSE transport
	Version                          string // of the protocol
	Initialize, List, NextList, Call json.RawMessage
	Reply, CallReply                 json.RawMessage // around the result
	Answers, Forgets                 *answer         // to all, to calls of a lost session
}

// answer is an HTTP answer that ignores the request.
type answer struct {
	Status     int
	Body, Type string
}

const (
	echo    = `{"tools": [{"name": "echo", "description": "d", "inputSchema": {"type": "object"}}]}`
	stream  = "text/event-stream"
	refused = `{"jsonrpc": "2.0", "id": "ID", "error": {"code": %d, "message": %q}}`
)

var notices = []string{`{"jsonrpc": "2.0", "method": "notifications/message",` +
	`"params": {"level": "info", "data": "busy"}}`,
	`{"jsonrpc": "2.0", "method": "notifications/unheard/of", "params": [1]}`,
	`{"jsonrpc": "2.0", "id": "s1", "method": "roots/list"}`,
	`{"jsonrpc": "2.0", "id": "s2", "method": "ping"}`,
	`{"jsonrpc": "2.0", "id": "s3", "method": "sampling/createMessage", "params": {}}`}

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Cursor          any
	}
}

// reply returns the message that answers m, or "".
func (a *Animal) reply(m message) string {
	if m.ID == nil || m.Method == "" {
		return ""
	}
	form := cmp.Or(string(a.Reply), `{"jsonrpc": "2.0", "id": "ID", "result": "RESULT"}`)
	result := "{}"
	switch m.Method {
	case "initialize":
		result = cmp.Or(string(a.Initialize), `{"protocolVersion": "VERSION",
			"capabilities": {"tools": {}}, "serverInfo": {"name": "zoo", "version": "1"}}`)
	case "tools/list":
		result = cmp.Or(string(a.List), echo)
		if m.Params.Cursor != nil && a.NextList != nil {
			result = string(a.NextList)
		}
		if a.Fault == "lists nothing" {
			form = fmt.Sprintf(refused, -32601, "Method not found")
		}
	case "tools/call":
		result = cmp.Or(string(a.Call), `{"content": [{"type": "text", "text": "the answer of echo"}]}`)
		form = cmp.Or(string(a.CallReply), form)
	case "server/discover":
		form = fmt.Sprintf(refused, -32601, "Method not found")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Method == "tools/call" {
		a.calls++
	}
	if a.Fault == "forgets over its pipes" && a.calls == 1 && a.starts < 2 {
		form = fmt.Sprintf(refused, -32000, "gone: never heard of it")
	}
	text := strings.NewReplacer(`"RESULT"`, result, `"'ID'"`, strconv.Quote(string(m.ID)),
		`"ID"`, string(m.ID)).Replace(form)
	return strings.NewReplacer("\n", " ", "\t", "", "VERSION", cmp.Or(a.Version,
		m.Params.ProtocolVersion), "UNIQUE", string(m.ID), "LONG", strings.Repeat("y", 5000),
		`"NOTANUMBER"`, "NaN").Replace(text)
}

// framed formats a message as the animal writes it.
func (a *Animal) framed(text, frame, between string) string {
	half := len(text) / 2
	if half += strings.Index(text[half:], ",") + 1; text[half-1] != ',' {
		half = strings.Index(text, ",") + 1
	}
	frame = cmp.Or(a.Frame, frame)
	var indented bytes.Buffer
	if strings.Contains(frame, "INDENTED") {
		json.Indent(&indented, []byte(text), "", "  ")
	}
	return strings.NewReplacer("TEXT", text, "HEAD", text[:half], "TAIL", text[half:],
		"NOTICES", strings.Join(notices, between), "INDENTED", indented.String()).Replace(frame)
}

// Pipes runs the animal like a process: it ends with its input.
func (a *Animal) Pipes(stderr io.Writer) (in io.WriteCloser, out io.ReadCloser) {
	read, in := io.Pipe()
	out, write := io.Pipe()
	go func() {
		a.speak(read, write, stderr)
		write.Close()
		read.CloseWithError(syscall.EPIPE)
	}()
	return in, out
}

func (a *Animal) speak(in io.Reader, out, stderr io.Writer) {
	a.mu.Lock()
	a.starts++
	failing := a.Late && a.starts < 3
	a.mu.Unlock()
	hang := func() { io.Copy(io.Discard, in) }
	io.WriteString(out, a.First)
	switch {
	case a.Fault == "hangs":
		io.WriteString(stderr, "loading\n")
		hang()
	case a.Fault == "ends at once" || failing:
		io.WriteString(stderr, "Traceback:\n  of many lines\nKeyError: no API_KEY\n")
		return
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		text := a.reply(m)
		switch called := m.Method == "tools/call"; {
		case text == "":
		case called && a.Fault == "ends in a call":
			return
		case called && strings.HasPrefix(a.Fault, "half a line and") || called && a.Fault == "half a line":
			if io.WriteString(out, text[:len(text)/2]); a.Fault == "half a line" {
				return
			}
			hang()
		case called && a.Fault == "hangs in a call",
			m.Method == "tools/list" && a.Fault == "hangs at the list":
			hang()
		default:
			io.WriteString(out, a.framed(text, "TEXT\n", "\n"))
		}
	}
}

// ServeHTTP serves streamable HTTP, or the old SSE transport if Over is sse.
func (a *Animal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && (a.Over == "sse" || a.Fault == "answers elsewhere"):
		a.serveStream(w, r)
	case r.Method == http.MethodGet && a.Fault == "not found":
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodPost:
		var m message
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.servePost(w, r, m)
	}
}

// serveStream sends the answers to posts as events.
func (a *Animal) serveStream(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 16)
	a.mu.Lock()
	if a.streams = append(a.streams, events); len(a.streams) == 1 {
		close(a.streamed)
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", stream)
	if a.Over == "sse" {
		form := cmp.Or(a.Endpoint, "event: endpoint\ndata: POST\n\n")
		io.WriteString(w, strings.Replace(form, "POST", path.Dir(r.URL.Path)+"/post", 1))
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-events:
			io.WriteString(w, event)
		case <-r.Context().Done():
			return
		}
	}
}

// streamAnswer answers in the newest stream.
func (a *Animal) streamAnswer(w http.ResponseWriter, text string) {
	<-a.streamed
	a.mu.Lock()
	defer a.mu.Unlock()
	if text != "" {
		a.streams[len(a.streams)-1] <- fmt.Sprintf("event: message\ndata: %s\n\n", text)
	}
	w.WriteHeader(http.StatusAccepted)
}

func (a *Animal) send(w http.ResponseWriter, r *answer, m message) {
	w.Header().Set("Content-Type", cmp.Or(r.Type, "application/json"))
	w.WriteHeader(r.Status)
	io.WriteString(w, strings.ReplaceAll(r.Body, `"ID"`, cmp.Or(string(m.ID), "null")))
}

func (a *Animal) servePost(w http.ResponseWriter, r *http.Request, m message) {
	called := m.Method == "tools/call"
	a.mu.Lock()
	a.starts++
	unique := fmt.Sprint("session", a.starts)
	if m.Method == "initialize" {
		a.sessions[unique] = true
	}
	session := r.Header.Get("Mcp-Session-Id")
	if called && a.Forgets != nil && len(a.sessions) == 1 {
		a.sessions = map[string]bool{"one was lost": true}
	}
	forgot := a.Forgets != nil && m.Method != "initialize" && m.Method != "" && !a.sessions[session]
	lost := a.Fault == "old, forgets" && called && a.calls == 0
	if lost {
		a.calls++
	}
	failing := a.Over == "http" && a.Late && a.starts < 4
	a.mu.Unlock()
	switch {
	case lost:
		a.send(w, &answer{404, "Could not find session", "text/plain"}, m)
		return
	case a.Over == "sse":
		a.streamAnswer(w, a.reply(m))
		return
	case forgot:
		a.send(w, a.Forgets, m)
		return
	case a.Answers != nil:
		a.send(w, a.Answers, m)
		return
	case failing:
		a.send(w, &answer{503, "starting", "text/plain"}, m)
		return
	case a.Fault == "refuses notices" && m.ID == nil:
		a.send(w, &answer{400, "what?", ""}, m)
		return
	case a.Fault == "hangs", a.Fault == "hangs in a call" && called:
		<-r.Context().Done()
		return
	}
	text := a.reply(m)
	switch {
	case text == "":
		w.WriteHeader(http.StatusAccepted)
		return
	case a.Fault == "answers elsewhere" && m.Method != "initialize":
		a.streamAnswer(w, text)
		return
	}
	if m.Method == "initialize" || a.Fault == "a new session each time" {
		w.Header().Set("Mcp-Session-Id", unique)
	}
	w.Header()["Content-Type"] = []string{cmp.Or(a.Kind, "application/json")}
	if a.Kind == "none" {
		w.Header()["Content-Type"] = nil
	}
	body := a.framed(text, "TEXT", "\n\ndata: ")
	switch {
	case a.Fault == "fails" && called:
		w.WriteHeader(http.StatusInternalServerError)
	case a.Fault == "ends midway" && called:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:20]
	}
	io.WriteString(w, body)
	if a.Fault == "events that do not end" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}
