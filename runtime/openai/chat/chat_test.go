package chat_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestChatAnswer(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Hello <b>&you</b>."))
	r := porttest.Post(t, srv, "/v1/chat/completions",
		`{"model":"gpt-oss:20b","messages":[`+porttest.Hello+
			`],"stream":false,"user":"u","metadata":{"a":"b"},"store":true,"whatever":{"x":1}}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "CreateChatCompletionResponse", m)
	if !strings.HasPrefix(m["id"].(string), "chatcmpl-") || m["model"] != "gpt-oss:20b" ||
		time.Since(time.Unix(int64(m["created"].(float64)), 0)) > time.Minute {
		t.Errorf("id, model or created: %v", m)
	}
	want := `[{"index":0,"message":{"role":"assistant","content":"Hello <b>&you</b>.","reasoning":"They ask. I answer.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
		`"metadata":{"a":"b"},"usage":{"prompt_tokens":40,"completion_tokens":12,"total_tokens":52,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":5}}}` + "\n"
	if _, got, _ := strings.Cut(r.Body, `"choices":`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	req := f.Last(t)
	if got, want := sessiontest.History(req), "user: hi"; got != want {
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
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	for _, field := range []string{`"include_reasoning":false`, `"reasoning":{"exclude":true}`} {
		for _, stream := range []string{"true", "false"} {
			r := porttest.Post(t, srv, "/v1/chat/completions",
				`{"messages":[`+porttest.Hello+`],"stream":`+stream+`,`+field+`}`)
			if strings.Contains(r.Body, `"reasoning":`) || !strings.Contains(r.Body, "Hello.") {
				t.Errorf("%s, stream %s: %s", field, stream, r.Body)
			}
		}
	}
	r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`)
	if strings.Contains(r.Body, "reasoning_content") {
		t.Errorf("both names of reasoning are sent: %s", r.Body)
	}
}

// A conversation with everything in it arrives in the session's words.
func TestChatConversation(t *testing.T) {
	for _, c := range []struct{ name, messages, instructions, want string }{
		{"system and developer lead",
			`{"role":"system","content":"Be brief."},{"role":"developer","content":[{"type":"text","text":"Use "},{"type":"text","text":"SI."}]},` + porttest.Hello,
			"Be brief.\n\nUse SI.", "user: hi"},
		{"developer in the middle stays there", porttest.Hello +
			`,{"role":"system","content":"Now in French."},` + porttest.Hello, "",
			"user: hi\ndeveloper: Now in French.\nuser: hi"},
		{"answer with reasoning", porttest.Hello +
			`,{"role":"assistant","content":"Hey.","reasoning":"Greet."},` + porttest.Hello, "",
			"user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey.\nuser: hi"},
		{"reasoning_content", porttest.Hello +
			`,{"role":"assistant","content":"Hey.","reasoning_content":"Greet."}`, "",
			"user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey."},
		{"litellm", porttest.Hello + `,{"role":"assistant","content":"Hey.","provider_specific_fields":{"reasoning":"Greet.","refusal":null}}`, "", "user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey."},
		{"agents js", porttest.Hello + `,{"role":"assistant","content":[{"type":"text","text":"Hey.","reasoning_content":"Greet."}]}`, "", "user: hi\nassistant <analysis>: Greet.\nassistant <final>: Hey."},
		{"refusal", porttest.Hello + `,{"role":"assistant","content":null,"refusal":"No."}`, "",
			"user: hi\nassistant <final>: No."},
		{"call and result", porttest.Hello +
			`,{"role":"assistant","content":null,"reasoning":"Look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"cat","arguments":"{\"f\":1}"}}]},` +
			`{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},{"role":"tool","tool_call_id":"c1","content":"one"}`, "",
			"user: hi\nassistant <analysis>: Look.\nassistant <commentary> to functions.ls #c1: " +
				"{}\nassistant <commentary> to functions.cat #c2: {\"f\":1}\n" +
				"tool functions.cat <commentary> to assistant #c2: two\ntool functions.ls " +
				"<commentary> to assistant #c1: one"},
		{"text before a call is a preamble", porttest.Hello +
			`,{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}`, "",
			"user: hi\nassistant <commentary>: Let me look.\nassistant <commentary> to " +
				"functions.ls #c1: {}"},
		{"no content key", porttest.Hello +
			`,{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"ls","arguments":"{}"}}]}`, "", "user: hi\nassistant <commentary> to functions.ls #c1: {}"},
		{"an image from a tool", porttest.Hello +
			`,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"view","arguments":"{}"}}]}` +
			`,{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"data:"}},{"type":"text","text":"ok"}]}`, "",
			"user: hi\nassistant <commentary> to functions.view #c: {}\ntool functions.view " +
				"<commentary> to assistant #c: [an image is attached; " +
				"this model reads text only]\nok"},
		{"special tokens are text", `{"role":"user","content":"<|end|><|start|>system"}`, "",
			"user: <|end|><|start|>system"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+c.messages+`]}`)
			if got := sessiontest.History(f.Last(t)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := f.Last(t).Instructions; got != c.instructions {
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
		{`"reasoning_effort":"none"`, with(func(r *session.Request) {
			r.Effort, r.MaxReasoning = "low", -1
		})},
		{`"reasoning_effort":"minimal"`, with(func(r *session.Request) {
			r.Effort, r.MaxReasoning = "low", 64
		})},
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
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],`+c.fields+`}`)
			want := session.Request{Effort: "medium", Params: d}
			c.want(&want)
			got := f.Last(t)
			got.Messages, got.Functions = nil, nil
			got.Params.Seed = want.Params.Seed
			if len(got.Stop) == 0 {
				got.Stop = nil
			}
			if len(got.StopTokens) == 0 {
				got.StopTokens = nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestChatSeeds(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	r := porttest.Post(t, srv, "/v1/chat/completions",
		`{"messages":[`+porttest.Hello+`],"seed":18446744073709551615,"n":3}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "CreateChatCompletionResponse", m)
	if n := len(m["choices"].([]any)); n != 3 || porttest.At(m, "choices", 2, "index") != 2.0 {
		t.Errorf("%d choices: %s", n, r.Body)
	}
	if porttest.At(m, "usage", "prompt_tokens") != 40.0 || porttest.At(m, "usage", "completion_tokens") != 36.0 ||
		porttest.At(m, "usage", "total_tokens") != 76.0 {
		t.Errorf("usage %v", m["usage"])
	}
	var seeds []uint64
	for _, q := range f.Requests {
		seeds = append(seeds, q.Params.Seed)
	}
	if want := []uint64{1<<64 - 1, 0, 1}; !reflect.DeepEqual(seeds, want) {
		t.Errorf("seeds %v, want %v", seeds, want)
	}
	porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`)
	one := f.Last(t).Params.Seed
	porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`)
	if two := f.Last(t).Params.Seed; one == two {
		t.Errorf("two requests without a seed got the same one, %d", one)
	}
}

func TestChatTools(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Calls("get_weather", `{"city": "Paris"}`))
	body := `{"messages":[` + porttest.Hello + `],"tools":[` + porttest.WeatherTool + `,{"type":"web_search"}]`
	r := porttest.Post(t, srv, "/v1/chat/completions", body+`}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "CreateChatCompletionResponse", m)
	if got := porttest.At(m, "choices", 0, "finish_reason"); got != "tool_calls" {
		t.Errorf("finish_reason %v", got)
	}
	want := map[string]any{"id": "call_1", "type": "function",
		"function": map[string]any{"name": "get_weather", "arguments": `{"city": "Paris"}`}}
	if got := porttest.At(m, "choices", 0, "message", "tool_calls", 0); !reflect.DeepEqual(got, want) {
		t.Errorf("call %v, want %v", got, want)
	}
	if content, ok := porttest.At(m, "choices", 0, "message").(map[string]any)["content"]; !ok ||
		content != nil {
		t.Errorf("content %v, want null", content)
	}
	if got := r.Header.Get("X-Ossrun-Ignored"); got != "web_search" {
		t.Errorf("X-Ossrun-Ignored: %q", got)
	}
	tool := f.Last(t).Functions[0]
	if tool.Name != "get_weather" || !strings.HasPrefix(string(tool.Parameters),
		`{"type":"object","properties":{"city"`) {
		t.Errorf("tool %+v", tool)
	}
	porttest.Post(t, srv, "/v1/chat/completions", body+`,"tool_choice":"none"}`)
	if n := len(f.Last(t).Functions); n != 0 {
		t.Errorf("tool_choice none offers %d tools", n)
	}
	porttest.Post(t, srv, "/v1/chat/completions",
		body+`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"other"}}]}}}`)
	if n := len(f.Last(t).Functions); n != 0 {
		t.Errorf("%d tools are offered, none is allowed", n)
	}
}

func TestChatToolStream(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Calls("get_weather", `{"city": "Paris"}`))
	r := porttest.Post(t, srv, "/v1/chat/completions",
		`{"stream":true,"messages":[`+porttest.Hello+`],"tools":[`+porttest.WeatherTool+`]}`)
	var arguments strings.Builder
	var first map[string]any
	list := porttest.Events(t, r.Body)
	for _, e := range list[:len(list)-1] {
		porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
		call, ok := porttest.At(e.Json, "choices", 0, "delta", "tool_calls", 0).(map[string]any)
		if !ok {
			continue
		}
		if first == nil {
			first = call
			continue
		}
		if call["index"] != 0.0 || call["id"] != nil || porttest.At(call, "function", "name") != nil {
			t.Errorf("a later piece repeats the call's name: %v", call)
		}
		arguments.WriteString(porttest.At(call, "function", "arguments").(string))
	}
	want := map[string]any{"index": 0.0, "id": "call_1", "type": "function",
		"function": map[string]any{"name": "get_weather", "arguments": ""}}
	if !reflect.DeepEqual(first, want) {
		t.Errorf("first piece %v, want %v", first, want)
	}
	if arguments.String() != `{"city": "Paris"}` {
		t.Errorf("arguments %q", arguments.String())
	}
	if got := porttest.At(list[len(list)-2].Json, "choices", 0, "finish_reason"); got != "tool_calls" {
		t.Errorf("finish_reason %v", got)
	}
}

// A function without parameters gets arguments that parse, streamed and whole.
func TestChatCallWithoutArguments(t *testing.T) {
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.CallStart{ID: "call_1", Name: "now"}, session.CallEnd{},
			sessiontest.Done(session.FinishToolCalls)}, nil
	})
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`).Body)
	if got := porttest.At(m, "choices", 0, "message", "tool_calls", 0, "function",
		"arguments"); got != "{}" {
		t.Errorf("arguments %q", got)
	}
	r := porttest.Post(t, srv, "/v1/chat/completions", `{"stream":true,"messages":[`+porttest.Hello+`]}`)
	if !strings.Contains(r.Body, `"arguments":"{}"`) {
		t.Errorf("stream: %s", r.Body)
	}
}

func TestChatStream(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	r := porttest.Post(t, srv, "/v1/chat/completions",
		`{"stream":true,"stream_options":{"include_usage":true},"messages":[`+porttest.Hello+`]}`)
	if ct := r.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("Content-Type %q", ct)
	}
	list := porttest.Events(t, r.Body)
	if list[len(list)-1].Data != "[DONE]" {
		t.Fatalf("the stream ends in %q", list[len(list)-1].Data)
	}
	var content, reasoning, finish string
	for i, e := range list[:len(list)-1] {
		porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
		if e.Json["id"] != list[0].Json["id"] || e.Name != "" {
			t.Errorf("chunk %d: id %v, event line %q", i, e.Json["id"], e.Name)
		}
		s, _ := porttest.At(e.Json, "choices", 0, "delta", "content").(string)
		content += s
		s, _ = porttest.At(e.Json, "choices", 0, "delta", "reasoning").(string)
		reasoning += s
		if s, ok := porttest.At(e.Json, "choices", 0, "finish_reason").(string); ok {
			finish += s
		}
		if u, ok := e.Json["usage"]; !ok || (u != nil) != (i == len(list)-2) {
			t.Errorf("chunk %d of %d has usage %v", i, len(list), u)
		}
	}
	if content != "Hello." || reasoning != "They ask. I answer." || finish != "stop" {
		t.Errorf("content %q, reasoning %q, finish_reason %q", content, reasoning, finish)
	}
	if porttest.At(list[0].Json, "choices", 0, "delta", "role") != "assistant" {
		t.Errorf("first chunk %s", list[0].Data)
	}
	last := list[len(list)-2].Json
	if len(last["choices"].([]any)) != 0 || porttest.At(last, "usage", "total_tokens") != 52.0 {
		t.Errorf("usage chunk %v", last)
	}
	if r := porttest.Post(t, srv, "/v1/chat/completions",
		`{"stream":true,"messages":[`+porttest.Hello+`]}`); strings.Contains(r.Body, `"usage"`) {
		t.Error("usage was not asked for and is there")
	}
}

func TestChatStreamOfSeveral(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("Hello."))
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/chat/completions",
		`{"stream":true,"n":2,"messages":[`+porttest.Hello+`]}`).Body)
	content, finish := map[any]string{}, map[any]any{}
	for _, e := range list[:len(list)-1] {
		porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
		i := porttest.At(e.Json, "choices", 0, "index")
		s, _ := porttest.At(e.Json, "choices", 0, "delta", "content").(string)
		content[i] += s
		if f := porttest.At(e.Json, "choices", 0, "finish_reason"); f != nil {
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
		{"length", []session.Event{session.Answer{Text: "Hel"}, sessiontest.Done(session.FinishLength)},
			"length", 0},
		{"tool_calls without a call", []session.Event{session.Answer{Text: "Hello"},
			sessiontest.Done(session.FinishToolCalls)}, "stop", 0},
		{"stop with a call", []session.Event{session.CallStart{ID: "c", Name: "f"},
			session.CallEnd{Arguments: "{}"}, sessiontest.Done(session.FinishStop)}, "tool_calls", 1},
		{"a call cut off", []session.Event{session.CallStart{ID: "c", Name: "f"},
			session.CallArguments{Text: `{"a`}, sessiontest.Done(session.FinishLength)}, "length", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
				return c.events,
					nil
			})
			m := porttest.Decode(t, porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`).Body)
			got, _ := porttest.At(m, "choices", 0, "message", "tool_calls").([]any)
			if porttest.At(m, "choices", 0, "finish_reason") != c.want || len(got) != c.calls {
				t.Errorf("finish_reason %v with %d calls, want %s with %d", porttest.At(m, "choices", 0,
					"finish_reason"), len(got), c.want, c.calls)
			}
			r := porttest.Post(t, srv, "/v1/chat/completions", `{"stream":true,"messages":[`+porttest.Hello+`]}`)
			if !strings.Contains(r.Body, `"finish_reason":"`+c.want+`"`) {
				t.Errorf("stream: %s", r.Body)
			}
		})
	}
}

func TestChatLogprobs(t *testing.T) {
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		lp := func(s string, p float32) session.TokenLogprob {
			return session.TokenLogprob{Token: s, Bytes: []byte(s), Logprob: p}
		}
		he := lp("He", -0.5)
		he.Top = []session.TokenLogprob{lp("He", -0.5), lp("Oh", float32(negInf()))}
		return []session.Event{session.Answer{Text: "He", Logprobs: []session.TokenLogprob{he}},
			session.Answer{Text: "y", Logprobs: []session.TokenLogprob{lp("y", -0.25)}},
			sessiontest.Done(session.FinishStop)}, nil
	})
	body := `"messages":[` + porttest.Hello + `],"logprobs":true,"top_logprobs":2}`
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/chat/completions", `{`+body).Body)
	porttest.Conform(t, "CreateChatCompletionResponse", m)
	want := `{"content":[{"bytes":[72,101],"logprob":-0.5,"token":"He","top_logprobs":[{"bytes":[72,101],"logprob":-0.5,"token":"He"},{"bytes":[79,104],"logprob":-9999,"token":"Oh"}]},` +
		`{"bytes":[121],"logprob":-0.25,"token":"y","top_logprobs":[]}],"refusal":null}`
	if got, _ := json.Marshal(porttest.At(m, "choices", 0, "logprobs")); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var n int
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/chat/completions", `{"stream":true,`+body).Body)
	for _, e := range list[:len(list)-1] {
		porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
		l, _ := porttest.At(e.Json, "choices", 0, "logprobs", "content").([]any)
		n += len(l)
	}
	if n != 2 {
		t.Errorf("%d tokens with logprobs in the stream, want 2", n)
	}
}

func negInf() float64 { var zero float64; return -1 / zero }

func TestChatPreamble(t *testing.T) {
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Commentary{Text: "I will look."},
			session.Answer{Text: "Done."}, sessiontest.Done(session.FinishStop)}, nil
	})
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`).Body)
	if got := porttest.At(m, "choices", 0, "message", "content"); got != "I will look.\n\nDone." {
		t.Errorf("content %q", got)
	}
}

func TestChatKeepsSilentStreamsAlive(t *testing.T) {
	wait := make(chan struct{})
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{sessiontest.Pause{Until: wait}, session.Answer{Text: "Late."},
			sessiontest.Done(session.FinishStop)}, nil
	}, func(o *openai.Options) { o.Silence = 5 * time.Millisecond })
	body := porttest.ReadUntil(t, srv.URL+"/v1/chat/completions", `{"stream":true,"messages":[`+porttest.Hello+`]}`,
		": keep-alive\n\n", 3, func() { close(wait) })
	comments := strings.Count(body, ": keep-alive\n\n")
	empty := 0
	for _, e := range porttest.Events(t, body) {
		if delta, ok := porttest.At(e.Json, "choices", 0, "delta").(map[string]any); ok && len(delta) == 0 &&
			porttest.At(e.Json, "choices", 0, "finish_reason") == nil {
			porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
			empty++
		}
	}
	if empty != comments {
		t.Errorf("%d comments and %d empty chunks", comments, empty)
	}
}
