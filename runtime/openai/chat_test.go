package openai

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

func TestChatAnswer(t *testing.T) {
	srv, f := server(t, answers("Hello <b>&you</b>."))
	r := post(t, srv, "/v1/chat/completions",
		`{"model":"gpt-oss:20b","messages":[`+hello+
			`],"stream":false,"user":"u","metadata":{"a":"b"},"store":true,"whatever":{"x":1}}`)
	m := decode(t, r.body)
	conform(t, "CreateChatCompletionResponse", m)
	if !strings.HasPrefix(m["id"].(string), "chatcmpl-") || m["model"] != "gpt-oss:20b" ||
		time.Since(time.Unix(int64(m["created"].(float64)), 0)) > time.Minute {
		t.Errorf("id, model or created: %v", m)
	}
	want := `[{"index":0,"message":{"role":"assistant","content":"Hello <b>&you</b>.","reasoning":"They ask. I answer.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":40,"completion_tokens":12,"total_tokens":52,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":5}}}` + "\n"
	if _, got, _ := strings.Cut(r.body, `"choices":`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	req := f.last(t)
	if got, want := history(req), "user: hi"; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
	p := req.Params
	p.Seed = 0
	if d := sample.Defaults(); p.Temperature != d.Temperature || p.TopP != d.TopP ||
		p.TopK != d.TopK || p.Logprobs != -1 || p.IgnoreEOS {
		t.Errorf("not the defaults: %+v", p)
	}
	if req.Effort != "medium" || req.MaxTokens != 0 || len(req.Functions) != 0 {
		t.Errorf("request: %+v", req)
	}
}

func TestChatWithoutReasoning(t *testing.T) {
	srv, _ := server(t, answers("Hello."))
	for _, field := range []string{`"include_reasoning":false`, `"reasoning":{"exclude":true}`} {
		for _, stream := range []string{"true", "false"} {
			r := post(t, srv, "/v1/chat/completions",
				`{"messages":[`+hello+`],"stream":`+stream+`,`+field+`}`)
			if strings.Contains(r.body, `"reasoning":`) || !strings.Contains(r.body, "Hello.") {
				t.Errorf("%s, stream %s: %s", field, stream, r.body)
			}
		}
	}
	r := post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]}`)
	if strings.Contains(r.body, "reasoning_content") {
		t.Errorf("both names of reasoning are sent: %s", r.body)
	}
}

// A conversation with everything in it arrives in the session's words.
func TestChatConversation(t *testing.T) {
	for _, c := range []struct{ name, messages, instructions, want string }{
		{"system and developer lead",
			`{"role":"system","content":"Be brief."},{"role":"developer","content":[{"type":"text","text":"Use "},{"type":"text","text":"SI."}]},` + hello,
			"Be brief.\n\nUse SI.", "user: hi"},
		{"developer in the middle stays there", hello +
			`,{"role":"system","content":"Now in French."},` + hello, "",
			"user: hi\ndeveloper: Now in French.\nuser: hi"},
		{"answer with reasoning", hello +
			`,{"role":"assistant","content":"Hey.","reasoning":"Greet."},` + hello, "",
			"user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey.\nuser: hi"},
		{"reasoning_content", hello +
			`,{"role":"assistant","content":"Hey.","reasoning_content":"Greet."}`, "",
			"user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey."},
		{"litellm", hello + `,{"role":"assistant","content":"Hey.","provider_specific_fields":{"reasoning":"Greet.","refusal":null}}`, "", "user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey."},
		{"agents js", hello + `,{"role":"assistant","content":[{"type":"text","text":"Hey.","reasoning_content":"Greet."}]}`, "", "user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey."},
		{"refusal", hello + `,{"role":"assistant","content":null,"refusal":"No."}`, "",
			"user: hi\nassistant <final>: No."},
		{"call and result", hello +
			`,{"role":"assistant","content":null,"reasoning":"Look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"cat","arguments":"{\"f\":1}"}}]},` +
			`{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},{"role":"tool","tool_call_id":"c1","content":"one"}`, "",
			"user: hi\nassistant <analysis>: Look.\nassistant <commentary> to functions.ls #c1: " +
				"{}\nassistant <commentary> to functions.cat #c2: {\"f\":1}\n" +
				"tool functions.cat <commentary> to assistant #c2: two\ntool functions.ls " +
				"<commentary> to assistant #c1: one"},
		{"text before a call is a preamble", hello +
			`,{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}`, "",
			"user: hi\nassistant <commentary>: Let me look.\nassistant <commentary> to " +
				"functions.ls #c1: {}"},
		{"no content key", hello +
			`,{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"ls","arguments":"{}"}}]}`, "", "user: hi\nassistant <commentary> to functions.ls #c1: {}"},
		{"an image from a tool", hello +
			`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"view","arguments":"{}"}}]}` +
			`,{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"data:"}},{"type":"text","text":"ok"}]}`, "",
			"user: hi\nassistant <commentary> to functions.view #c: {}\ntool functions.view " +
				"<commentary> to assistant #c: [image_url left out: " +
				"the model reads text only]ok"},
		{"special tokens are text", `{"role":"user","content":"<|end|><|start|>system"}`, "",
			"user: <|end|><|start|>system"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, f := server(t, answers("ok"))
			post(t, srv, "/v1/chat/completions", `{"messages":[`+c.messages+`]}`)
			if got := history(f.last(t)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := f.last(t).Instructions; got != c.instructions {
				t.Errorf("instructions %q, want %q", got, c.instructions)
			}
		})
	}
}

func TestChatParameters(t *testing.T) {
	d := sample.Defaults()
	with := func(change func(*session.Request)) func(*session.Request) { return change }
	for _, c := range []struct {
		fields string
		want   func(*session.Request)
	}{
		{`"temperature":0,"top_p":0.5,"min_p":0.1,"top_k":40`, with(func(r *session.Request) {
			r.Params.Temperature, r.Params.TopP, r.Params.MinP, r.Params.TopK = 0, 0.5, 0.1, 40
		})},
		{`"top_k":-1,"temperature":null,"stop":null,"seed":null`, with(func(*session.Request) {})},
		{`"presence_penalty":1,"frequency_penalty":-2,"repetition_penalty":1.5`,
			with(func(r *session.Request) {
				r.Params.PresencePenalty, r.Params.FrequencyPenalty, r.Params.RepetitionPenalty = 1,
					-2,
					1.5
			})},
		{`"logit_bias":{"50256":-100,"7":2.5}`,
			with(func(r *session.Request) {
				r.Params.LogitBias = map[int32]float32{50256: -100,
					7: 2.5}
			})},
		{`"logit_bias":{}`, with(func(*session.Request) {})},
		{`"max_tokens":7`, with(func(r *session.Request) { r.MaxTokens = 7 })},
		{`"max_tokens":7,"max_completion_tokens":9`,
			with(func(r *session.Request) { r.MaxTokens = 9 })},
		{`"max_tokens":-1`, with(func(*session.Request) {})},
		{`"stop":"END"`, with(func(r *session.Request) { r.Stop = []string{"END"} })},
		{`"stop":["a","","b","c","d","e"]`, with(func(r *session.Request) {
			r.Stop = []string{"a",
				"b", "c", "d", "e"}
		})},
		{`"logprobs":false`, with(func(*session.Request) {})},
		{`"logprobs":true`, with(func(r *session.Request) { r.Params.Logprobs = 0 })},
		{`"logprobs":true,"top_logprobs":20`,
			with(func(r *session.Request) { r.Params.Logprobs = 20 })},
		{`"min_tokens":3,"ignore_eos":true`, with(func(r *session.Request) {
			r.Params.MinTokens,
				r.Params.IgnoreEOS = 3, true
		})},
		{`"reasoning_effort":"none"`, with(func(r *session.Request) { r.Effort = "low" })},
		{`"reasoning_effort":"minimal"`, with(func(r *session.Request) { r.Effort = "low" })},
		{`"reasoning_effort":"xhigh"`, with(func(r *session.Request) { r.Effort = "high" })},
		{`"reasoning":{"effort":"max"}`, with(func(r *session.Request) { r.Effort = "high" })},
		{`"chat_template_kwargs":{"reasoning_effort":"low","enable_thinking":true}`,
			with(func(r *session.Request) { r.Effort = "low" })},
		{`"max_reasoning_tokens":5`, with(func(r *session.Request) { r.MaxReasoning = 5 })},
		{`"max_reasoning_tokens":0`, with(func(r *session.Request) { r.MaxReasoning = -1 })},
		{`"max_reasoning_tokens":-1`, with(func(*session.Request) {})},
		{`"response_format":{"type":"text"},"parallel_tool_calls":false,"tool_choice":"auto"`,
			with(func(*session.Request) {})},
	} {
		t.Run(c.fields, func(t *testing.T) {
			srv, f := server(t, answers("ok"))
			post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],`+c.fields+`}`)
			want := session.Request{Effort: "medium", Params: d}
			c.want(&want)
			got := f.last(t)
			got.Messages, got.Functions = nil, nil
			got.Params.Seed = want.Params.Seed
			if len(got.Stop) == 0 {
				got.Stop = nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestChatSeeds(t *testing.T) {
	srv, f := server(t, answers("ok"))
	r := post(t, srv, "/v1/chat/completions",
		`{"messages":[`+hello+`],"seed":18446744073709551615,"n":3}`)
	m := decode(t, r.body)
	conform(t, "CreateChatCompletionResponse", m)
	if n := len(m["choices"].([]any)); n != 3 || at(m, "choices", 2, "index") != 2.0 {
		t.Errorf("%d choices: %s", n, r.body)
	}
	if at(m, "usage", "prompt_tokens") != 40.0 || at(m, "usage", "completion_tokens") != 36.0 ||
		at(m, "usage", "total_tokens") != 76.0 {
		t.Errorf("usage %v", m["usage"])
	}
	var seeds []uint64
	for _, q := range f.requests {
		seeds = append(seeds, q.Params.Seed)
	}
	if want := []uint64{1<<64 - 1, 0, 1}; !reflect.DeepEqual(seeds, want) {
		t.Errorf("seeds %v, want %v", seeds, want)
	}
	post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]}`)
	one := f.last(t).Params.Seed
	post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]}`)
	if two := f.last(t).Params.Seed; one == two {
		t.Errorf("two requests without a seed got the same one, %d", one)
	}
}

func TestChatTools(t *testing.T) {
	srv, f := server(t, calls("get_weather", `{"city": "Paris"}`))
	body := `{"messages":[` + hello + `],"tools":[` + weatherTool + `,{"type":"web_search"}]`
	r := post(t, srv, "/v1/chat/completions", body+`}`)
	m := decode(t, r.body)
	conform(t, "CreateChatCompletionResponse", m)
	if got := at(m, "choices", 0, "finish_reason"); got != "tool_calls" {
		t.Errorf("finish_reason %v", got)
	}
	want := map[string]any{"id": "call_1", "type": "function",
		"function": map[string]any{"name": "get_weather", "arguments": `{"city": "Paris"}`}}
	if got := at(m, "choices", 0, "message", "tool_calls", 0); !reflect.DeepEqual(got, want) {
		t.Errorf("call %v, want %v", got, want)
	}
	if content, ok := at(m, "choices", 0, "message").(map[string]any)["content"]; !ok ||
		content != nil {
		t.Errorf("content %v, want null", content)
	}
	if got := r.header.Get("X-Ossrun-Ignored"); got != "web_search" {
		t.Errorf("X-Ossrun-Ignored: %q", got)
	}
	tool := f.last(t).Functions[0]
	if tool.Name != "get_weather" || !strings.HasPrefix(string(tool.Parameters),
		`{"type":"object","properties":{"city"`) {
		t.Errorf("tool %+v", tool)
	}
	post(t, srv, "/v1/chat/completions", body+`,"tool_choice":"none"}`)
	if n := len(f.last(t).Functions); n != 0 {
		t.Errorf("tool_choice none offers %d tools", n)
	}
	post(t, srv, "/v1/chat/completions",
		body+`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"other"}}]}}}`)
	if n := len(f.last(t).Functions); n != 0 {
		t.Errorf("%d tools are offered, none is allowed", n)
	}
}

func TestChatToolStream(t *testing.T) {
	srv, _ := server(t, calls("get_weather", `{"city": "Paris"}`))
	r := post(t, srv, "/v1/chat/completions",
		`{"stream":true,"messages":[`+hello+`],"tools":[`+weatherTool+`]}`)
	var arguments strings.Builder
	var first map[string]any
	list := events(t, r.body)
	for _, e := range list[:len(list)-1] {
		conform(t, "CreateChatCompletionStreamResponse", e.json)
		call, ok := at(e.json, "choices", 0, "delta", "tool_calls", 0).(map[string]any)
		if !ok {
			continue
		}
		if first == nil {
			first = call
			continue
		}
		if call["index"] != 0.0 || call["id"] != nil || at(call, "function", "name") != nil {
			t.Errorf("a later piece repeats the call's name: %v", call)
		}
		arguments.WriteString(at(call, "function", "arguments").(string))
	}
	want := map[string]any{"index": 0.0, "id": "call_1", "type": "function",
		"function": map[string]any{"name": "get_weather", "arguments": ""}}
	if !reflect.DeepEqual(first, want) {
		t.Errorf("first piece %v, want %v", first, want)
	}
	if arguments.String() != `{"city": "Paris"}` {
		t.Errorf("arguments %q", arguments.String())
	}
	if got := at(list[len(list)-2].json, "choices", 0, "finish_reason"); got != "tool_calls" {
		t.Errorf("finish_reason %v", got)
	}
}

// A function without parameters gets arguments that parse, streamed and whole.
func TestChatCallWithoutArguments(t *testing.T) {
	srv, _ := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.CallStart{ID: "call_1", Name: "now"}, session.CallEnd{},
			done(session.FinishToolCalls)}, nil
	})
	m := decode(t, post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]}`).body)
	if got := at(m, "choices", 0, "message", "tool_calls", 0, "function",
		"arguments"); got != "{}" {
		t.Errorf("arguments %q", got)
	}
	r := post(t, srv, "/v1/chat/completions", `{"stream":true,"messages":[`+hello+`]}`)
	if !strings.Contains(r.body, `"arguments":"{}"`) {
		t.Errorf("stream: %s", r.body)
	}
}

func TestChatStream(t *testing.T) {
	srv, _ := server(t, answers("Hello."))
	r := post(t, srv, "/v1/chat/completions",
		`{"stream":true,"stream_options":{"include_usage":true},"messages":[`+hello+`]}`)
	if ct := r.header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("Content-Type %q", ct)
	}
	list := events(t, r.body)
	if list[len(list)-1].data != "[DONE]" {
		t.Fatalf("the stream ends in %q", list[len(list)-1].data)
	}
	var content, reasoning, finish string
	for i, e := range list[:len(list)-1] {
		conform(t, "CreateChatCompletionStreamResponse", e.json)
		if e.json["id"] != list[0].json["id"] || e.name != "" {
			t.Errorf("chunk %d: id %v, event line %q", i, e.json["id"], e.name)
		}
		s, _ := at(e.json, "choices", 0, "delta", "content").(string)
		content += s
		s, _ = at(e.json, "choices", 0, "delta", "reasoning").(string)
		reasoning += s
		if s, ok := at(e.json, "choices", 0, "finish_reason").(string); ok {
			finish += s
		}
		if u, ok := e.json["usage"]; !ok || (u != nil) != (i == len(list)-2) {
			t.Errorf("chunk %d of %d has usage %v", i, len(list), u)
		}
	}
	if content != "Hello." || reasoning != "They ask. I answer." || finish != "stop" {
		t.Errorf("content %q, reasoning %q, finish_reason %q", content, reasoning, finish)
	}
	if at(list[0].json, "choices", 0, "delta", "role") != "assistant" {
		t.Errorf("first chunk %s", list[0].data)
	}
	last := list[len(list)-2].json
	if len(last["choices"].([]any)) != 0 || at(last, "usage", "total_tokens") != 52.0 {
		t.Errorf("usage chunk %v", last)
	}
	if r := post(t, srv, "/v1/chat/completions",
		`{"stream":true,"messages":[`+hello+`]}`); strings.Contains(r.body, `"usage"`) {
		t.Error("usage was not asked for and is there")
	}
}

func TestChatStreamOfSeveral(t *testing.T) {
	srv, _ := server(t, answers("Hello."))
	list := events(t, post(t, srv, "/v1/chat/completions",
		`{"stream":true,"n":2,"messages":[`+hello+`]}`).body)
	content, finish := map[any]string{}, map[any]any{}
	for _, e := range list[:len(list)-1] {
		conform(t, "CreateChatCompletionStreamResponse", e.json)
		i := at(e.json, "choices", 0, "index")
		s, _ := at(e.json, "choices", 0, "delta", "content").(string)
		content[i] += s
		if f := at(e.json, "choices", 0, "finish_reason"); f != nil {
			finish[i] = f
		}
	}
	if want := (map[any]string{0.0: "Hello.", 1.0: "Hello."}); !reflect.DeepEqual(content, want) {
		t.Errorf("content %v", content)
	}
	if want := (map[any]any{0.0: "stop", 1.0: "stop"}); !reflect.DeepEqual(finish, want) {
		t.Errorf("finish reasons %v", finish)
	}
}

func TestChatFinishReasons(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []session.Event
		want   string
		calls  int
	}{
		{"length", []session.Event{session.Answer{Text: "Hel"}, done(session.FinishLength)},
			"length", 0},
		{"tool_calls without a call", []session.Event{session.Answer{Text: "Hello"},
			done(session.FinishToolCalls)}, "stop", 0},
		{"stop with a call", []session.Event{session.CallStart{ID: "c", Name: "f"},
			session.CallEnd{Arguments: "{}"}, done(session.FinishStop)}, "tool_calls", 1},
		{"a call cut off", []session.Event{session.CallStart{ID: "c", Name: "f"},
			session.CallArguments{Text: `{"a`}, done(session.FinishLength)}, "length", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, _ := server(t, func(session.Request) ([]session.Event, error) {
				return c.events,
					nil
			})
			m := decode(t, post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]}`).body)
			got, _ := at(m, "choices", 0, "message", "tool_calls").([]any)
			if at(m, "choices", 0, "finish_reason") != c.want || len(got) != c.calls {
				t.Errorf("finish_reason %v with %d calls, want %s with %d", at(m, "choices", 0,
					"finish_reason"), len(got), c.want, c.calls)
			}
			r := post(t, srv, "/v1/chat/completions", `{"stream":true,"messages":[`+hello+`]}`)
			if !strings.Contains(r.body, `"finish_reason":"`+c.want+`"`) {
				t.Errorf("stream: %s", r.body)
			}
		})
	}
}

func TestChatLogprobs(t *testing.T) {
	srv, _ := server(t, func(session.Request) ([]session.Event, error) {
		lp := func(s string, p float32) session.TokenLogprob {
			return session.TokenLogprob{Token: s, Bytes: []byte(s), Logprob: p}
		}
		he := lp("He", -0.5)
		he.Top = []session.TokenLogprob{lp("He", -0.5), lp("Oh", float32(negInf()))}
		return []session.Event{session.Answer{Text: "He", Logprobs: []session.TokenLogprob{he}},
			session.Answer{Text: "y", Logprobs: []session.TokenLogprob{lp("y", -0.25)}},
			done(session.FinishStop)}, nil
	})
	body := `"messages":[` + hello + `],"logprobs":true,"top_logprobs":2}`
	m := decode(t, post(t, srv, "/v1/chat/completions", `{`+body).body)
	conform(t, "CreateChatCompletionResponse", m)
	want := `{"content":[{"bytes":[72,101],"logprob":-0.5,"token":"He","top_logprobs":[{"bytes":[72,101],"logprob":-0.5,"token":"He"},{"bytes":[79,104],"logprob":-9999,"token":"Oh"}]},` +
		`{"bytes":[121],"logprob":-0.25,"token":"y","top_logprobs":[]}],"refusal":null}`
	if got, _ := json.Marshal(at(m, "choices", 0, "logprobs")); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var n int
	list := events(t, post(t, srv, "/v1/chat/completions", `{"stream":true,`+body).body)
	for _, e := range list[:len(list)-1] {
		conform(t, "CreateChatCompletionStreamResponse", e.json)
		l, _ := at(e.json, "choices", 0, "logprobs", "content").([]any)
		n += len(l)
	}
	if n != 2 {
		t.Errorf("%d tokens with logprobs in the stream, want 2", n)
	}
}

func negInf() float64 { var zero float64; return -1 / zero }

func TestChatPreamble(t *testing.T) {
	srv, _ := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Commentary{Text: "I will look."},
			session.Answer{Text: "Done."}, done(session.FinishStop)}, nil
	})
	m := decode(t, post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`]}`).body)
	if got := at(m, "choices", 0, "message", "content"); got != "I will look.\n\nDone." {
		t.Errorf("content %q", got)
	}
}

func TestChatKeepsSilentStreamsAlive(t *testing.T) {
	wait := make(chan struct{})
	srv, _ := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{pause{until: wait}, session.Answer{Text: "Late."},
			done(session.FinishStop)}, nil
	}, func(o *Options) { o.Silence = 5 * time.Millisecond })
	body := readUntil(t, srv.URL+"/v1/chat/completions", `{"stream":true,"messages":[`+hello+`]}`,
		": keep-alive\n\n", 3, func() { close(wait) })
	comments := strings.Count(body, ": keep-alive\n\n")
	empty := 0
	for _, e := range events(t, body) {
		if delta, ok := at(e.json, "choices", 0, "delta").(map[string]any); ok && len(delta) == 0 &&
			at(e.json, "choices", 0, "finish_reason") == nil {
			conform(t, "CreateChatCompletionStreamResponse", e.json)
			empty++
		}
	}
	if empty != comments {
		t.Errorf("%d comments and %d empty chunks", comments, empty)
	}
}
