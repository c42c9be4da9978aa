// The port is compared with a recording: /openapi.json, and the answer to values of every type and
// beyond every bound in each field of each body. An outcome is the status and the fault, or the
// turn that is started.
//
// After an intended change: go test ./runtime/openai -run Surface -update, and review the diff.

package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// surfaceFolder has the document, and a file for each route.
const surfaceFolder = "testdata/surface"

// bases are requests that are answered with 200; a field of each is changed.
var bases = map[string]string{
	"/v1/chat/completions":         `{"messages":[{"role":"user","content":"a"}]}`,
	"/v1/completions":              `{"prompt":"a"}`,
	"/v1/responses":                `{"input":"a"}`,
	"/v1/responses/input_tokens":   `{"input":"a"}`,
	"/v1/responses/compact":        `{"model":"gpt-oss:20b","input":"a"}`,
	"/v1/messages":                 `{"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`,
	"/v1/messages/count_tokens":    `{"messages":[{"role":"user","content":"a"}]}`,
	"/api/chat":                    `{"model":"gpt-oss:20b","messages":[{"role":"user","content":"a"}]}`,
	"/api/generate":                `{"model":"gpt-oss:20b","prompt":"a"}`,
	"/tokenize":                    `{"prompt":"a"}`,
	"/detokenize":                  `{"tokens":[1]}`,
	"/v1/conversations/{id}/items": `{"items":[{"role":"user","content":"a"}]}`,
	"/v1/conversations/{id}":       `{"metadata":{"a":"b"}}`,
	"/v1/chat/completions/{id}":    `{"metadata":{"a":"b"}}`,
	"/api/show":                    `{"model":"gpt-oss:20b"}`,
	"/api/pull":                    `{"model":"gpt-oss:20b"}`,
	"/v1/conversations":            `{}`,
	"/v1/messages/batches":         `{"requests":[{"custom_id":"a","params":{}}]}`,
	"/v1/batches":                  `{"input_file_id":"FILE","completion_window":"24h","endpoint":"/v1/responses"}`,
}

// undocumented are fields that routes read or ignore, and members of documented ones.
var undocumented = []string{"web_search_options", "use_beam_search", "prompt_logprobs",
	"continue_final_message", "add_generation_prompt", "echo", "truncate_prompt_tokens",
	"chat_template", "suffix", "template", "images", "user", "service_tier", "store",
	"parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options",
	"safety_identifier", "client_metadata", "prediction", "include", "truncation", "request_id",
	"cache_salt", "priority", "guided_structural_tag", "guided_whitespace_pattern", "misspelt",
	"cache_control", "context_management", "inference_geo", "text.verbosity", "text.format",
	"text.misspelt", "reasoning.effort", "reasoning.summary", "reasoning.generate_summary",
	"reasoning.exclude", "reasoning.misspelt", "chat_template_kwargs.reasoning_effort",
	"chat_template_kwargs.misspelt", "stream_options.include_usage", "stream_options.misspelt",
	"structured_outputs.regex", "thinking.type", "thinking.budget_tokens", "thinking.display",
	"output_config.effort", "output_config.format", "temperature", "max_tokens", "top_k",
	"response_format.type", "metadata.a", "logit_bias.5", "logit_bias.x", "name"}

// ollamaOptions are Ollama's.
var ollamaOptions = []string{"temperature", "top_p", "min_p", "top_k", "seed", "presence_penalty",
	"frequency_penalty", "repetition_penalty", "repeat_penalty", "num_predict", "stop", "num_ctx",
	"logit_bias", "min_tokens", "ignore_eos", "bad_words", "misspelt"}

// values are set in each field, in addition to its bounds.
var values = []any{nil, true, false, "bogus", "low", "", 0, 7, -3, 1.5, 1e12, []any{}, []any{"a"},
	[]any{1}, []any{map[string]any{}}, map[string]any{}, map[string]any{"type": "bogus"}}

var update = flag.Bool("update", false, "write testdata/surface again")

func TestSurfaceIsAsRecorded(t *testing.T) {
	now := recordSurface(t)
	if *update {
		hosttest.Check(t, os.RemoveAll(surfaceFolder))
		hosttest.Check(t, os.MkdirAll(surfaceFolder, 0o755))
		for name, text := range now {
			hosttest.Check(t, os.WriteFile(filepath.Join(surfaceFolder, name), []byte(text), 0o644))
		}
	}
	for _, e := range hosttest.Must(os.ReadDir(surfaceFolder))(t) {
		if now[e.Name()] == "" {
			t.Errorf("%s is recorded, and no route has it", e.Name())
		}
	}
	lines, shown := 0, 0
	for _, name := range slices.Sorted(maps.Keys(now)) {
		text, err := os.ReadFile(filepath.Join(surfaceFolder, name))
		if err != nil {
			t.Error(err)
			continue
		}
		recorded, current := strings.Split(string(text), "\n"), strings.Split(now[name], "\n")
		lines += len(recorded)
		differ := func(sign string, lines, others []string) {
			for _, line := range lines {
				if !slices.Contains(others, line) && shown < 60 {
					shown++
					t.Errorf("%s %s %s", name, sign, line)
				}
			}
		}
		differ("-", recorded, current)
		differ("+", current, recorded)
		if shown == 0 && !slices.Equal(recorded, current) {
			t.Errorf("%s has the same lines in another order", name)
		}
	}
	if lines < 4000 {
		t.Fatalf("only %d lines are recorded", lines)
	}
}

// recordSurface returns the port's document, and for each route a line for each outcome of a field,
// by file name.
func recordSurface(t *testing.T) map[string]string {
	t.Helper()
	srv, model := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		answer := session.Answer{Text: "ok"}
		if r.Params.Logprobs >= 0 {
			answer.Logprobs = []session.TokenLogprob{{ID: 1, Token: "ok", Bytes: []byte("ok")}}
		}
		return []session.Event{answer, sessiontest.Done(session.FinishStop)}, nil
	})
	files := map[string]string{}
	document := porttest.Ask(t, "GET", srv.URL+"/openapi.json", "").Body
	var pretty bytes.Buffer
	hosttest.Check(t, json.Indent(&pretty, []byte(document), "", " "))
	files["openapi.json"] = pretty.String() + "\n"
	talk := porttest.At(porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body), "id").(string)
	file := idIn(t, upload(t, srv, "batch", "in.jsonl", ""))
	completion := storedCompletion(t, srv)
	paths := porttest.At(porttest.Decode(t, document), "paths").(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		fields, _ := porttest.At(paths[path], "post", "requestBody", "content", "application/json", "schema",
			"properties").(map[string]any)
		if fields == nil {
			continue
		}
		if bases[path] == "" {
			t.Fatalf("there is no request for %s", path)
		}
		outcome := func(body map[string]any) (answer string, turn map[string]any) {
			if body["input_file_id"] == "FILE" {
				body["input_file_id"] = file
			}
			text, _ := json.Marshal(body)
			model.Mu.Lock()
			model.Requests = nil
			model.Mu.Unlock()
			r := porttest.Ask(t, "POST", srv.URL+strings.NewReplacer(
				"completions/{id}", "completions/"+completion, "{id}", talk).Replace(path), string(text),
				"X-Request-Id", "req_1")
			answer = fmt.Sprint(r.Status)
			if r.Status != http.StatusOK {
				answer += " " + strings.TrimSpace(r.Body)
			}
			for _, h := range []string{"X-Ossrun-Ignored", "X-Ossrun-Relaxed"} {
				if s := r.Header.Get(h); s != "" {
					answer += " " + h + ": " + s
				}
			}
			if len(model.Requests) == 0 {
				return answer, nil
			}
			return fmt.Sprint(answer, ", turns ", len(model.Requests)), turnFields(t, model.Last(t))
		}
		var out strings.Builder
		_, plain := outcome(porttest.Decode(t, bases[path]))
		names := slices.Collect(maps.Keys(fields))
		if plain != nil {
			names = append(names, undocumented...)
		}
		if fields["options"] != nil {
			for _, name := range ollamaOptions {
				names = append(names, "options."+name)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			tried := slices.Clone(values)
			switch {
			case strings.HasPrefix(name, "options."):
				tried = append(tried, 0.005, 0.01, 1, 2, 3, -1, -2, 100, 100.5)
			case fields[name] == nil:
				tried = []any{nil, true, "low", "bogus", 7, []any{"a"}, map[string]any{}}
			case name == "background": // its turn begins when it likes
				continue
			}
			for _, bound := range []string{"minimum", "maximum"} {
				if b, ok := porttest.At(fields[name], bound).(float64); ok {
					tried = append(tried, b-1, b, b+1)
				}
			}
			outcomes := map[string][]string{} // from an outcome to the values that have it
			for _, v := range tried {
				answer, turn := outcome(withField(porttest.Decode(t, bases[path]), name, v))
				for _, field := range slices.Sorted(maps.Keys(turn)) {
					if part := fmt.Sprint(turn[field]); part != fmt.Sprint(plain[field]) {
						answer += fmt.Sprintf(" %s=%q", field, part)
					}
				}
				shown, _ := json.Marshal(v)
				outcomes[answer] = append(outcomes[answer], string(shown))
			}
			for _, answer := range slices.Sorted(maps.Keys(outcomes)) {
				fmt.Fprintf(&out, "%s: %s -> %s\n", name, outcomes[answer], answer)
			}
		}
		file := strings.NewReplacer("/", "-", "{", "", "}", "").Replace(path[1:])
		files[file+".txt"] = out.String()
	}
	return files
}

// withField sets a field of a body, which may be one of an object.
func withField(body map[string]any, name string, v any) map[string]any {
	outer, inner, ok := strings.Cut(name, ".")
	if !ok {
		body[name] = v
		return body
	}
	in := map[string]any{inner: v}
	if outer == "thinking" && inner != "type" {
		in["type"] = "enabled"
	}
	body[outer] = in
	return body
}

// turnFields returns the fields of a session request.
func turnFields(t *testing.T, r session.Request) map[string]any {
	t.Helper()
	if r.Params.Seed > 1<<20 && r.Params.Seed != 1e12 && r.Params.Seed < 1<<64-3 {
		r.Params.Seed = 1 // it was drawn
	}
	text := hosttest.Must(json.Marshal(r))(t)
	turn := porttest.Decode(t, string(text))
	maps.Copy(turn, turn["Params"].(map[string]any))
	delete(turn, "Params")
	turn["Final"], turn["Texts"] = r.Final != nil, len(r.Texts)
	return turn
}
