package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzMessages gives what a server writes to the reader of each transport. Every frame is one
// message that the SDK reads, whatever it is of can be decoded, and where the text was cut on its
// way makes no difference.
func FuzzMessages(f *testing.F) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"isError":"x"}}`,
		"log line\n{\"jsonrpc\":\"2.0\",\r\n\"id\":\"7\",\n\"result\":{\"tools\":[{\"name\":\"a\",\"inputSchema\":[]},{}]}\n}\n",
		"\ufeffevent: message\ndata: {\"id\":1,\"result\":{\"structuredContent\":{\"result\":[1,2]},\"content\":\"x\"}}\n\n",
		`[{"id":1,"error":"no"},{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":NaN}}]`,
		"data: /messages?session=1\n\ndata:{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":null}",
		`{"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":[],"serverInfo":{"name":1}}}`,
		`{"id":0,"result":{"protocolVersion":0}}`,
		`{"id":1,"result":{"content":[{"type":"image","data":"x"},{"type":"resource","resource":{"text":"t"}},7,null]}}`,
	} {
		for kind := range uint8(3) {
			f.Add([]byte(text), kind, uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, kind uint8, seed uint64) {
		begin, end := []string{"", "data: ", "data: "}[kind%3], []string{"\n", "\n\n", "\n\n"}[kind%3]
		reader := func(r io.Reader) *messageReader {
			return &messageReader{lines: newLines(r), begin: begin, end: end, endpoint: kind%3 == 2,
				forceID: kind%3 == 1, id: func() []byte { return []byte("3") }}
		}
		whole, err := io.ReadAll(reader(bytes.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		for name, cut := range map[string]io.Reader{"in single bytes": iotest.OneByteReader(bytes.NewReader(text)),
			"in pieces": pieces{bytes.NewReader(text), rand.New(rand.NewPCG(seed, 1))}} {
			if got, err := io.ReadAll(reader(cut)); err != nil || !bytes.Equal(got, whole) {
				t.Fatalf("%s: %v\n%q\nat once\n%q", name, err, got, whole)
			}
		}
		for frame := range strings.SplitSeq(strings.TrimSuffix(string(whole), end), end) {
			if frame == "" && len(whole) == 0 || strings.HasPrefix(frame, "event: endpoint\ndata: ") && kind%3 == 2 {
				continue
			}
			message, ok := strings.CutPrefix(frame, begin)
			decoded, err := jsonrpc.DecodeMessage([]byte(message))
			if !ok || err != nil || strings.ContainsAny(message, "\r\n") {
				t.Fatalf("the frame %q: %v", frame, err)
			}
			if r, answer := decoded.(*jsonrpc.Response); answer && r.Error == nil {
				checkResult(t, r.Result)
			}
		}
	})
}

// checkResult decodes a result that was passed on as all that it can be of, and describes and reads
// that for the model.
func checkResult(t *testing.T, text json.RawMessage) {
	t.Helper()
	var is object
	if err := json.Unmarshal(text, &is); err != nil {
		t.Fatalf("the result %s: %v", text, err)
	}
	var list sdk.ListToolsResult
	var call sdk.CallToolResult
	for name, to := range map[string]any{"tools": &list, "content": &call,
		"protocolVersion": new(sdk.InitializeResult)} {
		if err := json.Unmarshal(text, to); err != nil && is[name] != nil {
			t.Fatalf("the result %s is not one with %s: %v", text, name, err)
		}
	}
	if again := repair(text); !sameJSON(again, text) {
		t.Fatalf("the result\n%s\nis repaired again, to\n%s", text, again)
	}
	from := &source{label: "s"}
	tools, _ := describeAll(from, list.Tools, nil)
	names := map[string]bool{}
	for _, one := range tools {
		d := one.description
		if names[d.Name] || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" ||
			d.Name == "" || !utf8.ValidString(d.Description) || !json.Valid(d.Parameters) {
			t.Fatalf("described as %+v", d)
		}
		names[d.Name] = true
	}
	if result, err := convertResult("s: f", &call); !utf8.ValidString(result.Text) ||
		err != nil && !utf8.ValidString(err.Error()) {
		t.Fatalf("read as %q, %q", result.Text, err)
	}
}

// pieces are read with lengths of chance.
type pieces struct {
	r      *bytes.Reader
	chance *rand.Rand
}

func (p pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.chance.IntN(40))])
}

// FuzzConfig reads lists of servers: valid JSON keeps its meaning, and each entry is a server, is
// disabled, or has its note.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "x", "args": [1, "${HOME}"]}, /* c */ "b": {"url": "http://x/mcp"},}}`,
		`{"servers": {"a // b": {"type": "sse", "url": "https://x", "headers": {"k": "${env:NOPE:-v}"}}}}`,
		`{"mcp": {"servers": {"a": {"httpUrl": "http://x", "disabled": true}, "b": null, "c": 7}}}`,
		"\ufeff{\"mcpServers\": {\"\": {\"command\": \"${input:x}\", \"tools\": [\"*\"], \"envFile\": \"/nope\"}}}",
		`{"mcpServers": {"a": {"command": "x", "env": {"A": "$A", "B": 1}, "require_approval": {"never": []}}}}`,
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "mcp.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if json.Valid(text) {
			var plain, cleared any
			if err := errors.Join(json.Unmarshal(text, &plain),
				json.Unmarshal(withoutComments(text), &cleared)); err != nil ||
				!reflect.DeepEqual(plain, cleared) {
				t.Fatalf("%s\nbecame\n%s: %v", text, withoutComments(text), err)
			}
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		list, notes, err := Config(path)
		if err != nil && (list != nil || notes != nil) {
			t.Fatalf("servers and an error: %v", err)
		}
		for _, s := range list {
			if s.Disabled || (s.Command == "") == (s.URL == "") {
				t.Fatalf("%+v is a server", s)
			}
		}
		for _, note := range notes {
			if !strings.Contains(note, " was skipped: ") || !utf8.ValidString(note) {
				t.Fatalf("the note %q", note)
			}
		}
	})
}
