// Calls of tools that this process runs, as Anthropic's clients know them: server_tool_use and a
// result, of web_search, web_fetch and code_execution; and the sources of the answer.
//
// What must stay true: each server_tool_use has its result next; a result that comes back is what
// the model has read, or the next turn would miss the prefix cache. A page that the model opens for
// a search is no call to the client, who asked for no fetch.

package messages

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

const (
	webSearch     = "web_search"
	webFetch      = "web_fetch"
	codeExecution = "code_execution"
)

// serverCall is a call of a tool that this process runs.
type serverCall struct {
	id, name  string // name "": the client does not see it
	arguments string
}

// serverUses counts calls by the client's names.
type serverUses struct {
	Fetches  int `json:"web_fetch_requests"`
	Searches int `json:"web_search_requests"`
}

type citation struct {
	Type      string `json:"type"` // web_search_result_location
	CitedText string `json:"cited_text"`
	Index     string `json:"encrypted_index"`
	Title     string `json:"title"`
	URL       string `json:"url"`
}

type searchResult struct {
	Type    string  `json:"type"` // web_search_result
	URL     string  `json:"url"`
	Title   string  `json:"title"`
	Content string  `json:"encrypted_content"` // what the model has read, in the first result
	PageAge *string `json:"page_age"`
}

type toolError struct {
	Type string `json:"type"`
	Code string `json:"error_code"`
}

type fetchedPage struct {
	Type      string   `json:"type"` // web_fetch_result
	URL       string   `json:"url"`
	Retrieved string   `json:"retrieved_at"`
	Content   document `json:"content"`
}

type document struct {
	Type   string         `json:"type"` // document
	Title  string         `json:"title"`
	Source documentSource `json:"source"`
}

type documentSource struct {
	Type      string `json:"type"` // text
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type codeResult struct {
	Type       string   `json:"type"` // code_execution_result
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	ReturnCode int      `json:"return_code"`
	Content    []string `json:"content"` // files: none
}

// openUses counts calls if a tool of the web was asked for.
func (m *form) openUses() {
	if slices.ContainsFunc(m.req.builtins, func(r tools.Requested) bool {
		return r.Kind == tools.Browser
	}) {
		m.uses = &serverUses{}
	}
}

// startServerCall reports whether the call runs here.
func (m *form) startServerCall(e session.CallStart) bool {
	t := tools.ByRecipient(m.req.tools, e.Recipient)
	if t == nil {
		return false
	}
	call := &serverCall{id: e.ID}
	switch {
	case t.Kind == tools.Python:
		call.name = codeExecution
	case e.Recipient == "browser.search":
		call.name = webSearch
	case e.Recipient == "browser.open" && t.Fetches():
		call.name = webFetch
	}
	if m.calls == nil {
		m.calls = map[int]*serverCall{}
	}
	m.calls[e.Index] = call
	return true
}

// announce sends a call that is complete. The address of a fetch may be known only from its result.
func (m *form) announce(call *serverCall) {
	switch call.name {
	case webSearch:
		m.serverToolUse(call, inputWith(call.arguments, "query", ""))
	case codeExecution:
		input, _ := answer.Marshal(map[string]string{"code": call.arguments}) // strings cannot fail
		m.serverToolUse(call, input)
	}
}

func (m *form) serverToolUse(call *serverCall, input json.RawMessage) {
	m.openBlock(&messageBlock{Type: "server_tool_use", ID: call.id, Name: call.name,
		Input: json.RawMessage("{}")})
	m.sent = 0
	m.arguments(string(input))
	m.last().Input = input
	m.closeBlock()
}

// inputWith are the model's arguments with a member that clients read.
func inputWith(arguments, name, value string) json.RawMessage {
	input := map[string]any{}
	_ = json.Unmarshal([]byte(arguments), &input) // else there are none
	if text, is := input[name].(string); !is || text == "" {
		input[name] = value
	}
	raw, err := answer.Marshal(input)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

func (m *form) endServerCall(e session.ToolEnd) {
	call := m.calls[e.Index]
	delete(m.calls, e.Index)
	if call == nil || call.name == "" {
		return
	}
	result := &messageBlock{Type: call.name + "_tool_result", ToolUseID: call.id}
	text := e.ModelText(session.DefaultResult)
	code := "unavailable"
	if errors.Is(e.Err, tools.ErrMaxUses) {
		code = "max_uses_exceeded"
	}
	switch call.name {
	case codeExecution:
		ran := codeResult{Type: "code_execution_result", Stdout: text, Content: []string{}}
		if e.Err != nil {
			start := max(strings.LastIndex(text, "Error: "), 0)
			ran.Stdout, ran.Stderr, ran.ReturnCode = text[:start], text[start:], 1
		}
		result.Content = ran
	case webSearch:
		if m.uses.Searches++; e.Err != nil {
			result.Content = toolError{"web_search_tool_result_error", code}
			break
		}
		results := []searchResult{}
		for _, s := range e.Result.Sources {
			results = append(results, searchResult{Type: "web_search_result", URL: s.URL,
				Title: s.Title})
		}
		if len(results) == 0 { // an MCP server's browser names no pages
			results = append(results, searchResult{Type: "web_search_result", Title: "Results"})
		}
		results[0].Content = request.Seal(text)
		result.Content = results
	case webFetch:
		m.uses.Fetches++
		page := session.Source{}
		if len(e.Result.Sources) > 0 {
			page = e.Result.Sources[0]
		} else {
			var arguments struct{ ID any }
			_ = json.Unmarshal([]byte(call.arguments), &arguments) // else it has no address
			page.URL, _ = arguments.ID.(string)
		}
		m.serverToolUse(call, inputWith(call.arguments, "url", page.URL))
		if e.Err != nil {
			result.Content = toolError{"web_fetch_tool_result_error", code}
			break
		}
		result.Content = fetchedPage{"web_fetch_result", page.URL,
			time.Now().UTC().Format(time.RFC3339), document{"document", page.Title,
				documentSource{"text", "text/plain", text}}}
	}
	m.openBlock(result)
	m.closeBlock()
}

// cite adds the sources of the answer to its text, which is open.
func (m *form) cite() {
	if len(m.req.tools) == 0 || !m.running || m.last().Type != "text" {
		return
	}
	for _, s := range m.Turns[0].Result().Citations {
		c := &citation{"web_search_result_location", s.Text, request.Seal(s.URL), s.Title, s.URL}
		m.last().Citations = append(m.last().Citations, c)
		m.delta(messageDelta{Type: "citations_delta", Citation: c})
	}
}

// readServerResult adds an earlier call of this server's with its result, as the model made and
// read them; false: it is another one.
func readServerResult(conv *request.Conversation, call, result *fields.Object) bool {
	id := call.Text("id")
	if call.Text("type") != "server_tool_use" || result.Text("tool_use_id") != id ||
		call.Get("input").Kind() != jsondoc.Object {
		return false
	}
	input := call.Object("input")
	recipient, arguments, text := "", "", ""
	switch content := result.Get("content"); {
	case content.Kind() == jsondoc.Array && call.Text("name") == webSearch:
		recipient, arguments = "browser.search", string(input.Value().Raw)
		for _, v := range content.List() {
			text += request.Unseal(v.Object().Text("encrypted_content"))
		}
	case content.Kind() != jsondoc.Object:
	case call.Text("name") == codeExecution:
		recipient, arguments = tools.Python, input.Text("code")
		text = content.Object().Text("stdout") + content.Object().Text("stderr")
	case call.Text("name") == webFetch && content.Object().Has("content"):
		recipient = "browser.open"
		text = content.Object().Object("content").Object("source").Text("data")
		sent := map[string]json.RawMessage{}
		for _, member := range input.Members() {
			sent[member.Name] = member.Value
		}
		if url := sent["url"]; sent["id"] == nil && sent["cursor"] == nil && sent["loc"] == nil {
			sent = map[string]json.RawMessage{"id": url}
		}
		delete(sent, "url")
		raw, _ := answer.Marshal(sent) // of parsed values
		arguments = string(raw)
	}
	if recipient == "" || text == "" && recipient != tools.Python {
		return false
	}
	conv.BuiltinCall(id, recipient, arguments, text)
	return true
}
