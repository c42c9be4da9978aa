// The life of a server, as a process of its own: models that come and go, a restart that loses
// nothing, and how it ends.

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
)

// cacheDemoAs puts the demo's weights into a Hugging Face cache under the names of other models.
func cacheDemoAs(t *testing.T, root string, names ...string) {
	t.Helper()
	weights, err := pack.Unpack(bytes.NewReader(assets.DemoPack))
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Free()
	for _, name := range names {
		repo, _ := store.ParseRepo(name)
		folder := filepath.Join(root, repo.Folder(), "snapshots",
			"c0ffee42c0ffee42c0ffee42c0ffee42c0ffee42")
		refs := filepath.Join(root, repo.Folder(), "refs")
		err := errors.Join(os.MkdirAll(folder, 0o755), os.MkdirAll(refs, 0o755),
			os.WriteFile(filepath.Join(refs, "main"), []byte(filepath.Base(folder)), 0o644),
			os.WriteFile(filepath.Join(folder, "config.json"), assets.DemoConfig, 0o644),
			os.WriteFile(filepath.Join(folder, "generation_config.json"),
				assets.DemoGenerationConfig, 0o644),
			os.WriteFile(filepath.Join(folder, "model.safetensors"), weights.Bytes, 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// loadedModels lists the models in memory. A server that is busy may not answer at once.
func (s *served) loadedModels() (names []string) {
	s.t.Helper()
	var list []local.Server
	s.eventually("the server says what it has loaded", func() bool {
		var err error
		list, err = local.Servers(s.t.Context(), filepath.Join(s.home, "run", "ossrun"))
		return err == nil && len(list) == 1
	})
	for _, m := range list[0].Models {
		if m.State != string(serve.Unloaded) {
			names = append(names, m.Name)
		}
	}
	return names
}

// namedModels asks for models by their ids, which may hold a slash.
func (s *served) namedModels(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		var m struct{ ID, Object string }
		s.get("/v1/models/"+id, &m)
		if name, _ := url.PathUnescape(id); m.ID != name || m.Object != "model" {
			s.t.Errorf("%s: %+v", id, m)
		}
	}
}

// long is a stream that would go on for minutes; rest reads it to its end.
func (s *served) long(tokens int) (rest func() string) {
	s.t.Helper()
	resp, err := s.web.Post(s.url+"/v1/chat/completions", "application/json",
		strings.NewReader(fmt.Sprintf(
			`{"model":"demo","stream":true,"ignore_eos":true,"seed":1,"max_tokens":%d,"messages":[{"role":"user","content":"What is ossrun?"}]}`, tokens)))
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewReader(resp.Body)
	for range 6 { // it runs
		if _, err := lines.ReadString('\n'); err != nil {
			s.t.Fatal(err)
		}
	}
	return func() string {
		defer resp.Body.Close()
		text, err := io.ReadAll(lines)
		if err != nil {
			s.t.Errorf("the stream was cut: %v", err)
		}
		return string(text)
	}
}

// A request's model switches: two stay loaded, a third replaces the least recently used. Sampled
// turns and computed pages outlive a model's unloading and the server; SIGTERM lets a request end,
// a second one ends it at once.
func TestServeLife(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	cacheDemoAs(t, filepath.Join(home, "hub"), "openai/gpt-oss-20b", "openai/gpt-oss-120b")
	// for a machine that has little left
	small := []string{"--max-model-len", "32768", "--max-num-seqs", "2", "--swap-space", "0.1",
		"--swap-disk", "0.5"}
	s := serveIn(t, home, nil, small...)
	chat := func(body string) (r chatReply) {
		t.Helper()
		s.post("/v1/chat/completions", body, &r)
		return r
	}
	respond := func(body string) (id string, input int) {
		t.Helper()
		var r struct {
			ID    string
			Usage struct {
				Input int `json:"input_tokens"`
			}
		}
		s.post("/v1/responses", body, &r)
		return r.ID, r.Usage.Input
	}

	const tools = `"tools":[{"type":"function","function":{"name":"list_files","parameters":{"type":"object","properties":{"folder":{"enum":["a","b"]}},"required":["folder"],"additionalProperties":false}}}]`
	const asked = `{"role":"system","content":"You look after the files of a person who has many of them, in folders that are named by letters."},{"role":"user","content":"What is in folder a?"}`
	first := chat(`{"model":"demo","seed":5,"max_reasoning_tokens":40,"tool_choice":"required",` +
		tools + `,"messages":[` + asked + `]}`)
	if len(first.Choices) != 1 || len(first.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("no call: %+v", first)
	}
	call := first.Choices[0].Message.ToolCalls[0]
	stored, length := respond(
		`{"model":"demo","input":"My name is Ada.","seed":3,"max_output_tokens":30}`)

	s.namedModels("openai/gpt-oss-20b", "openai%2Fgpt-oss-120b", "gpt-oss-20b", "demo")
	if got := s.loadedModels(); !slices.Equal(got, []string{"demo"}) {
		t.Errorf("to ask for a model has loaded %v", got)
	}
	chat(`{"model":"20b","max_tokens":4,"messages":[{"role":"user","content":"Hi"}]}`)
	if got := s.loadedModels(); !slices.Equal(got, []string{"demo", "gpt-oss-20b"}) {
		t.Errorf("loaded are %v", got)
	}
	chat(`{"model":"openai/gpt-oss-120b","max_tokens":4,"messages":[{"role":"user","content":"Hi"}]}`)
	if got := s.loadedModels(); !slices.Equal(got, []string{"gpt-oss-20b", "gpt-oss-120b"}) {
		t.Errorf("loaded are %v", got)
	}
	s.namedModels("openai/gpt-oss-20b", "openai/gpt-oss-120b", "demo")

	// The client drops the reasoning; the prompt has it nevertheless, and full computed pages are
	// found again.
	id, _ := json.Marshal(call.ID)
	arguments, _ := json.Marshal(call.Function.Arguments)
	followUp := fmt.Sprintf(`{"model":"demo","temperature":0,"max_tokens":24,%s,"messages":[%s,{"role":"assistant","tool_calls":[{"id":%s,"type":"function","function":{"name":"list_files","arguments":%s}}]},
		{"role":"tool","tool_call_id":%[3]s,"content":"letters.txt"}]}`, tools, asked, id, arguments)
	pages := func(r chatReply) int { return r.Usage.Prompt / engine.PageTokens * engine.PageTokens }
	second := chat(followUp)
	known := (first.Usage.Prompt + first.Usage.Generated - 1) /
		engine.PageTokens * engine.PageTokens
	if second.Usage.Details.Cached != known || known < 64 {
		t.Errorf("after the model was unloaded %d of %d tokens are cached, not %d",
			second.Usage.Details.Cached, second.Usage.Prompt, known)
	}
	if most := first.Usage.Prompt + first.Usage.Generated; second.Usage.Prompt < most {
		t.Errorf("the prompt has %d tokens: not the %d before it", second.Usage.Prompt, most)
	}

	// SIGTERM: nothing new is let in, what runs goes on; again: it ends at once, with an error
	// inside the stream.
	rest := s.long(30000)
	s.ended = true
	signal := func() {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	ends := func() int {
		<-s.done
		return s.cmd.ProcessState.ExitCode()
	}
	signal()
	s.eventually("the server drains",
		func() bool { return s.status("/health") == http.StatusServiceUnavailable })
	if r, _ := s.send("POST", "/v1/responses", `{"input":"x"}`); r.StatusCode != 503 {
		t.Errorf("a new request while the server drains: %s", r.Status)
	}
	signal()
	if text := rest(); !strings.Contains(text,
		`"error":{"message":"the server is shutting down"`) ||
		!strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("the stream ends with %s", text[max(0, len(text)-400):])
	}
	if code := ends(); code != 130 {
		t.Errorf("exit code %d: %s", code, s.err)
	}

	// The same again from another process. Chat completions leave no turn on disk, so the reasoning
	// before the call is gone; pages of a repeated prompt come from the disk, and each request is
	// answered. --keep-alive 0 unloads at once.
	s = serveIn(t, home, nil, append(small, "--keep-alive", "0", "--stream-interval", "5")...)
	said := ""
	for round := range 2 {
		again := chat(followUp)
		cached := again.Usage.Details.Cached
		if again.Usage.Prompt >= second.Usage.Prompt || cached < 64 ||
			round == 1 && cached != pages(again) {
			t.Errorf("after a restart %d of %d tokens are cached, of %d before", cached,
				again.Usage.Prompt, second.Usage.Prompt)
		}
		m := again.Choices[0].Message
		if round == 1 && m.Content+m.Reasoning != said {
			t.Errorf("%q, then %q", said, m.Content+m.Reasoning)
		}
		said = m.Content + m.Reasoning
		s.eventually("the idle model is unloaded",
			func() bool { return len(s.loadedModels()) == 0 })
	}
	if _, next := respond(fmt.Sprintf(`{"model":"demo","previous_response_id":%q,`+
		`"input":"What is my name?","max_output_tokens":4}`, stored)); next <= length {
		t.Errorf("%d tokens: the stored response is not in the prompt of the one that follows it",
			next)
	}
	rest = s.long(60)
	s.ended = true
	signal()
	if text := rest(); !strings.Contains(text, `"finish_reason":"length"`) {
		t.Errorf("a stream was not let end: %s", text)
	}
	if code := ends(); code != 0 && code != 130 {
		t.Errorf("exit code %d: %s", code, s.err)
	}
}
