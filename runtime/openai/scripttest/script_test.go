// The scripted model says what its prompt tells it to, through the port.

package scripttest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/scripttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chat is a chat completion, as far as the tests look at it.
type chat struct {
	Choices []struct {
		Message struct {
			Content, Reasoning string
			ToolCalls          []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		All     int `json:"total_tokens"`
		Answer  int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Error struct{ Code string }
}

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	return serveWith(t, records.NewStore())
}

func serveWith(t *testing.T, store records.Store) *httptest.Server {
	t.Helper()
	m := scripttest.New(0, store)
	handler := openai.NewHandler(openai.Options{Options: answer.Options{
		Models: scripttest.Models(m), Store: store}})
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.Close()
		handler.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func ask(t *testing.T, srv *httptest.Server, body string) (c chat) {
	t.Helper()
	resp := hosttest.Must(http.Post(srv.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(body)))(t)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	u := c.Usage
	if u.All != u.Prompt+u.Answer || u.Details.Cached > u.Prompt {
		t.Errorf("usage %+v", u)
	}
	return c
}

// said asks one thing and returns the answer, the reasoning and the finish reason.
func said(t *testing.T, srv *httptest.Server, prompt, more string) (content, reasoning,
	finish string) {
	t.Helper()
	text, _ := json.Marshal(prompt)
	c := ask(t, srv, `{"messages":[{"role":"user","content":`+string(text)+`}]`+more+`}`)
	if len(c.Choices) == 0 {
		return "", "", c.Error.Code
	}
	m := c.Choices[0].Message
	for _, call := range m.ToolCalls {
		m.Content += call.Function.Name + call.Function.Arguments
	}
	return m.Content, m.Reasoning, c.Choices[0].FinishReason
}

const (
	weather = `,"tools":[{"type":"function","function":{"name":"weather","strict":true,` +
		`"parameters":{"type":"object","properties":{"city":{"type":"string"},` +
		`"unit":{"enum":["c","f"]}},"required":["city","unit"],"additionalProperties":false}}}]`
	dated = `,"response_format":{"type":"json_schema","json_schema":{"name":"d","strict":true,` +
		`"schema":{"type":"object","properties":{"d":{"type":"string","format":"date"}},` +
		`"required":["d"],"additionalProperties":false}}}`
)

func TestScript(t *testing.T) {
	srv := serve(t)
	for _, c := range []struct{ prompt, more, content, reasoning, finish string }{
		{"Hi", "", "Done: all is well.", "They ask, I look.", "stop"},
		{"[[think Hm.]] [[say Yes.]]", "", "Yes.", "Hm.", "stop"},
		{"[[think Hm.]] [[say Yes, it is.]]", `,"max_tokens":9`, "", "Hm.", "length"},
		{`[[call weather {"city":"Bonn","unit":"f"}]]`, weather,
			`weather{"city":"Bonn","unit":"f"}`, "", "tool_calls"},
		{"Hi", weather, `weather{"city":"","unit":"c"}`, "They ask, I look.", "tool_calls"},
		{`[[call other {}]] [[say None is here.]]`, weather, "None is here.", "", "stop"},
		{`[[say {"d":"2026-11-23"}]]`, dated, `{"d":"2026-11-23"}`, "", "stop"},
		{`[[say No.]]`, dated, `{"d":"1111-11-11"}`, "", "stop"},
		{"[[think Hm.]] [[fail]]", "", "", "", "non_finite_logits"},
	} {
		content, reasoning, finish := said(t, srv, c.prompt, c.more)
		if content != c.content || reasoning != c.reasoning || finish != c.finish {
			t.Errorf("%s: %q, %q, %s", c.prompt, content, reasoning, finish)
		}
	}
}

// A turn that repeats itself is taken on to its answer. Its usage is that of its own prompt: the
// prompt of the answer is longer and was mostly cached, which gave more cached tokens than tokens.
func TestLoop(t *testing.T) {
	srv := serve(t)
	var count strings.Builder
	for i := range 200 {
		count.WriteString(strconv.Itoa(i) + ", ")
	}
	content, reasoning, finish := said(t, srv, "[[think "+count.String()+
		"]] [[loop again]] [[say Out of it.]]", "")
	if content != "Out of it." || !strings.Contains(reasoning, "again again") ||
		finish != "stop" {
		t.Errorf("%q, %.20q, %s", content, reasoning, finish)
	}
}

// Three turns with two calls, whose results come back.
func TestTurns(t *testing.T) {
	srv := serve(t)
	first, err := json.Marshal(`[[think One.]] [[call weather {"city":"Bonn","unit":"c"}]] ` +
		`[[call weather {"city":"Rome","unit":"c"}]] [[say Warm.]]`)
	hosttest.Check(t, err)
	messages := `{"role":"user","content":` + string(first) + `}`
	var seen []string
	for range 3 {
		m := ask(t, srv, `{"messages":[`+messages+`]`+weather+`}`).Choices[0].Message
		seen = append(seen, m.Content)
		for _, call := range m.ToolCalls {
			seen[len(seen)-1] += call.Function.Arguments
			arguments, _ := json.Marshal(call.Function.Arguments)
			messages += `,{"role":"assistant","tool_calls":[{"id":"` + call.ID +
				`","type":"function","function":{"name":"weather","arguments":` +
				string(arguments) + `}}]},{"role":"tool","tool_call_id":"` + call.ID +
				`","content":"20"}`
		}
	}
	want := `{"city":"Bonn","unit":"c"} {"city":"Rome","unit":"c"} Warm.`
	if got := strings.Join(seen, " "); got != want {
		t.Errorf("%s", got)
	}
}
