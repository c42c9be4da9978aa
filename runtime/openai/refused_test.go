package openai_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Parameters that would change the answer are honoured or refused; unknown ones are named.

const chatRoute, textRoute, responseRoute = "/v1/chat/completions", "/v1/completions", "/v1/responses"

func TestParametersAreNotDroppedInSilence(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, c := range []struct{ members, param string }{
		{`"modalities":["text","audio"]`, "modalities"},
		{`"verbosity":"bogus"`, "verbosity"},
		{`"verbosity":7`, "verbosity"},
		{`"web_search_options":{}`, "web_search_options"},
		{`"use_beam_search":true`, "use_beam_search"},
		{`"continue_final_message":true`, "continue_final_message"},
		{`"add_generation_prompt":false`, "add_generation_prompt"},
		{`"echo":true`, "echo"},
		{`"prompt_logprobs":0`, "prompt_logprobs"},
		{`"truncate_prompt_tokens":5`, "truncate_prompt_tokens"},
		{`"documents":[{"text":"a"}]`, "documents"},
		{`"include_stop_str_in_output":true`, "include_stop_str_in_output"},
		{`"logprob_token_ids":[5]`, "logprob_token_ids"},
		{`"allowed_token_ids":[5]`, "allowed_token_ids"},
		{`"chat_template":"{{x}}"`, "chat_template"},
		{`"stop_token_ids":["a"]`, "stop_token_ids[0]"},
		{`"stop_token_ids":[999999]`, "stop_token_ids[0]"},
		{`"bad_words":["hello","incomprehensibilities of ages"]`, "bad_words[1]"},
		{`"bad_words":[""]`, "bad_words[0]"},
		{`"metadata":{"a":1}`, "metadata.a"},
		{`"metadata":{"a":"` + strings.Repeat("x", 513) + `"}`, "metadata.a"},
		{`"metadata":{"` + strings.Repeat("k", 65) + `":"x"}`,
			"metadata." + strings.Repeat("k", 65)},
		{`"metadata":{` + manyMembers(17) + `}`, "metadata"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+chatRoute, porttest.ChatWith(c.members))
		if r.Status != 400 || porttest.At(porttest.Decode(t, r.Body), "error", "param") != c.param {
			t.Errorf("%s: %d %s, want a 400 of %s", c.members, r.Status, r.Body, c.param)
		}
	}
	for _, members := range []string{`"modalities":["text"]`, `"verbosity":"medium"`,
		`"use_beam_search":false`, `"documents":[]`, `"include_stop_str_in_output":false`, `"echo":false`, `"add_generation_prompt":true`,
		`"prompt_logprobs":null`, `"metadata":{` + manyMembers(16) + `}`} {
		r := porttest.Post(t, srv, chatRoute, porttest.ChatWith(members))
		if h := r.Header.Get("X-Ossrun-Ignored"); h != "" {
			t.Errorf("%s: %s is ignored", members, h)
		}
	}
}

func manyMembers(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"k%d":"%s"`, i, strings.Repeat("x", 512)))
	}
	return strings.Join(list, ",")
}

func TestUnknownParametersAreNamed(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	body := `"temprature":1,"wrong é":[],"user":"u","store":true,"gone":null,"seed":3`
	for _, c := range []struct{ path, body string }{
		{chatRoute, porttest.ChatWith(body)},
		{textRoute, `{"prompt":"a",` + body + `}`},
		{responseRoute, `{"input":"a",` + body + `}`},
	} {
		r := porttest.Post(t, srv, c.path, c.body)
		if h := r.Header.Get("X-Ossrun-Ignored"); h != "temprature, wrong ?" {
			t.Errorf("%s: ignored %q", c.path, h)
		}
	}
	const kwargs = `"chat_template_kwargs":{"reasoning_effort":"low","thinking":true,"a":{"b":1}}`
	for _, c := range []struct{ path, body, ignored string }{
		{chatRoute, porttest.ChatWith(kwargs),
			"chat_template_kwargs.a, chat_template_kwargs.thinking"},
		{responseRoute, `{"input":"a",` + kwargs + `}`,
			"chat_template_kwargs.a, chat_template_kwargs.thinking"},
		{textRoute, `{"prompt":"a",` + kwargs + `}`, "chat_template_kwargs"},
		{chatRoute, porttest.ChatWith(`"chat_template_kwargs":{"reasoning_effort":"low"}`), ""},
		{chatRoute, porttest.ChatWith(`"chat_template_kwargs":null`), ""},
		{chatRoute, porttest.ChatWith(`"stream":true,"stream_options":{"every_step":true}`),
			"stream_options.every_step"},
		{chatRoute, porttest.ChatWith(`"reasoning":{"effort":"low","enabled":true}`), "reasoning.enabled"},
		{responseRoute, `{"input":"a","text":{"verbosity":"low","length":3},"reasoning":` +
			`{"effort":"low","summary":null,"depth":1},"stream_options":{"x":1}}`,
			"reasoning.depth, text.length"},
	} {
		r := porttest.Post(t, srv, c.path, c.body)
		if h := r.Header.Get("X-Ossrun-Ignored"); h != c.ignored {
			t.Errorf("%s: ignored %q, want %q", c.body, h, c.ignored)
		}
	}
}

func TestParametersOfVLLM(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	porttest.Post(t, srv, chatRoute, porttest.ChatWith(`"stop_token_ids":[200002,13,200012],"verbosity":"high",`+
		`"bad_words":["hello"],"logit_bias":{"7":2}`))
	r := f.Last(t)
	want := map[int32]float32{7: 2}
	for _, spelling := range []string{"hello", " hello"} {
		want[token.Get().Encode(nil, spelling)[0]] = -100
	}
	if !reflect.DeepEqual(r.StopTokens, []int32{13}) ||
		!strings.Contains(r.Instructions, "Verbosity: high") ||
		!reflect.DeepEqual(r.Params.LogitBias, want) {
		t.Errorf("request %+v", r)
	}
	for body, name := range map[string]string{
		`{"input":"a","include_reasoning":false}`: "include_reasoning",
		`{"prompt":"a","prompt_embeds":"aGk="}`:   "prompt_embeds"} {
		path := map[bool]string{true: textRoute, false: responseRoute}[strings.HasPrefix(body, `{"p`)]
		porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+path, body), 400, fields.KindInvalid,
			name, "unsupported_parameter", name)
	}
	const before = `{"input":"c","previous_input_messages":[{"role":"system","content":"s"},` +
		`{"role":"user","content":"a"},{"role":"assistant","channel":"commentary",` +
		`"recipient":"functions.f","content_type":"json","content":[{"type":"text","text":"{}"}]},`
	porttest.Post(t, srv, responseRoute, before+`{"role":"tool","name":"functions.f","content":"b"}]}`)
	var read []string
	for _, m := range f.Last(t).Messages {
		read = append(read, strings.Join([]string{string(m.Role) + m.Name, m.Recipient, m.Channel,
			m.Text()}, "|"))
	}
	if want := []string{"user|||a", "assistant|functions.f|commentary|{}",
		"toolfunctions.f|assistant|commentary|b", "user|||c"}; !slices.Equal(read, want) {
		t.Errorf("messages %q, want %q", read, want)
	}
	for _, last := range []string{`1`, `{"role":"tool","content":"b"}`, `{"role":"user"}`,
		`{"role":"user","content":[{"type":"system_content"}]}`} {
		if r := porttest.Ask(t, "POST", srv.URL+responseRoute, before+last+`]}`); r.Status != 400 ||
			!strings.Contains(r.Body, "previous_input_messages[3]") {
			t.Errorf("%s: %d %s", last, r.Status, r.Body)
		}
	}
	porttest.Post(t, srv, textRoute, `{"prompt":[1,2,3,4],"truncate_prompt_tokens":3,"stop_token_ids":[13]}`)
	r = f.Last(t)
	if !reflect.DeepEqual(r.Prompt, []int32{2, 3, 4}) ||
		!reflect.DeepEqual(r.StopTokens, []int32{13}) {
		t.Errorf("request %+v", r)
	}
}

func TestTokenIDs(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	f.Result = session.Result{Prompt: []int32{5, 6}, Tokens: []int32{7, 8, 9}}
	prompt, sampled := []any{5., 6.}, []any{7., 8., 9.}
	m := porttest.Decode(t, porttest.Post(t, srv, chatRoute, porttest.ChatWith(`"return_token_ids":true`)).Body)
	if !reflect.DeepEqual(porttest.At(m, "prompt_token_ids"), any(prompt)) ||
		!reflect.DeepEqual(porttest.At(m, "choices", 0, "token_ids"), any(sampled)) {
		t.Errorf("whole: %v", m)
	}
	list := porttest.Events(t, porttest.Post(t, srv, chatRoute,
		porttest.ChatWith(`"return_token_ids":true,"stream":true`)).Body)
	var first, last any
	for _, e := range list {
		if v := porttest.At(e.Json, "prompt_token_ids"); v != nil {
			first = v
		}
		if v := porttest.At(e.Json, "choices", 0, "token_ids"); v != nil {
			last = v
		}
	}
	if !reflect.DeepEqual(first, any(prompt)) || !reflect.DeepEqual(last, any(sampled)) {
		t.Errorf("stream: %v %v", first, last)
	}
	m = porttest.Decode(t, porttest.Post(t, srv, textRoute, `{"prompt":[5,6],"return_token_ids":true}`).Body)
	if !reflect.DeepEqual(porttest.At(m, "choices", 0, "prompt_token_ids"), any(prompt)) ||
		!reflect.DeepEqual(porttest.At(m, "choices", 0, "token_ids"), any(sampled)) {
		t.Errorf("text: %v", m)
	}
	// in a stream each piece has its own ids, the end those without text
	f.Script = func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "o", Tokens: []int32{7}},
			session.Answer{Text: "k", Tokens: []int32{8}}, sessiontest.Done(session.FinishStop)}, nil
	}
	list = porttest.Events(t, porttest.Post(t, srv, textRoute,
		`{"prompt":[5,6],"return_token_ids":true,"stream":true}`).Body)
	var pieces []any
	for _, e := range list {
		if v, ok := porttest.At(e.Json, "choices", 0, "token_ids").([]any); ok {
			pieces = append(pieces, v...)
		}
	}
	if !reflect.DeepEqual(pieces, sampled) ||
		!reflect.DeepEqual(porttest.At(list[0].Json, "choices", 0, "prompt_token_ids"), any(prompt)) {
		t.Errorf("stream of text: %v", pieces)
	}
	r := porttest.Post(t, srv, chatRoute, porttest.ChatWith(`"return_token_ids":false`))
	if strings.Contains(r.Body, "token_ids") {
		t.Errorf("ids that nobody asked for: %s", r.Body)
	}
}

// vLLM's way to say which tokens may come, and to see those that are no text.
func TestTokensOfTexts(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	body := `{"prompt":[5],"allowed_token_ids":[8,9],"skip_special_tokens":false,"logprobs":1,` +
		`"return_tokens_as_token_ids":true}`
	f.Script = func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "<|call|>", Logprobs: []session.TokenLogprob{
			{ID: 200012, Token: "<|call|>", Top: []session.TokenLogprob{{ID: 3, Logprob: -2}}}}},
			sessiontest.Done(session.FinishStop)}, nil
	}
	m := porttest.Decode(t, porttest.Post(t, srv, textRoute, body).Body)
	if q := f.Last(t); !reflect.DeepEqual(q.Allowed, []int32{8, 9}) || !q.KeepSpecial {
		t.Errorf("%+v", q)
	}
	if porttest.At(m, "choices", 0, "logprobs", "tokens", 0) != "token_id:200012" ||
		porttest.At(m, "choices", 0, "logprobs", "top_logprobs", 0, "token_id:3") != -2. {
		t.Errorf("%v", m)
	}
	for _, bad := range []string{`[]`, `[-1]`, `[201088]`, `7`, `["a"]`, `[5,null]`} {
		r := porttest.Ask(t, "POST", srv.URL+textRoute, `{"prompt":[5],"allowed_token_ids":`+bad+`}`)
		if r.Status != 400 || !strings.Contains(r.Body, "allowed_token_ids") {
			t.Errorf("%s: %d %s", bad, r.Status, r.Body)
		}
	}
}

// What OpenAI refuses in a conversation.
func TestConversationsThatOpenAIRefuses(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	call := `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"x"}`
	for _, c := range []struct{ messages, param, message string }{
		{`{"role":"user"}`, "messages[0].content", "missing"},
		{`{"role":"user","content":null}`, "messages[0].content", "missing"},
		{`{"role":"user","content":[]}`, "messages[0].content", "missing"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+chatRoute, `{"messages":[`+c.messages+`]}`)
		code := ""
		if c.message == "missing" {
			code = "missing_required_parameter"
		}
		porttest.WantFault(t, r, 400, fields.KindInvalid, c.param, code, c.message)
	}
	porttest.Post(t, srv, chatRoute, `{"messages":[`+porttest.Hello+`,`+call+`,`+result+`,`+porttest.Hello+`]}`)
	porttest.Post(t, srv, chatRoute, `{"messages":[`+porttest.Hello+`,`+call+`]}`)
	r := porttest.Ask(t, "POST", srv.URL+chatRoute, porttest.ChatWith(
		`"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`))
	porttest.WantFault(t, r, 400, fields.KindInvalid, "response_format.json_schema.name",
		"missing_required_parameter", "name")
}
