// Conversion of a session's messages and tools to those of chat completions.
//
// The tools that gpt-oss was trained on have their own names and arguments. For a port they are
// functions: python with its code in an object, browser_search for browser.search.

package remote

import (
	"encoding/json"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/session"
)

type tool struct {
	Type     string   `json:"type"` // function
	Function function `json:"function"`
}

type function struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  raw    `json:"parameters,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	// the reasoning before a call, in the field that the port itself uses
	Reasoning        string `json:"reasoning,omitempty"`
	ReasoningContent string `json:"reasoning_content,omitempty"`

	Calls  []client.Call `json:"tool_calls,omitempty"`
	CallID string        `json:"tool_call_id,omitempty"`
}

const browserPrefix = "browser_"

func callableTools(r session.Request) (all []tool) {
	add := func(name, does string, parameters raw) {
		all = append(all, tool{"function", function{name, does, parameters}})
	}
	if r.Browser && r.Callable("browser") {
		browser := harmony.BuiltinBrowser()
		for i, t := range browser.Tools {
			does := t.Description
			if i == 0 { // the citation marks are explained once
				about, _, _ := strings.Cut(browser.Description, "\nsources=")
				does += "\n" + about
			}
			add(browserPrefix+t.Name, does, t.Parameters)
		}
	}
	if r.Python && r.Callable("python") {
		add("python", "Runs Python code. Variables stay from call to call, and the last "+
			"expression is printed.", raw(`{"type": "object", "properties": {"code": {"type": "string"}}, `+
			`"required": ["code"]}`))
	}
	for _, f := range r.Functions {
		if !r.Callable(harmony.FunctionsNamespace + "." + f.Name) {
			continue
		}
		parameters := f.Parameters
		if len(parameters) == 0 {
			parameters = raw(`{"type": "object", "properties": {}}`)
		}
		add(f.Name, f.Description, parameters)
	}
	return all
}

func toolChoice(c grammar.ToolChoice) string {
	switch c {
	case grammar.None:
		return "none"
	case grammar.Required:
		return "required"
	}
	return ""
}

// recipientOf converts a function call to the model's recipient and arguments.
func recipientOf(name, arguments string) (recipient, input string) {
	if rest, ok := strings.CutPrefix(name, browserPrefix); ok {
		return "browser." + rest, arguments
	}
	if name != "python" {
		return "functions." + name, arguments
	}
	var cell struct{ Code, Script, Input *string }
	if json.Unmarshal([]byte(arguments), &cell) == nil {
		for _, text := range []*string{cell.Code, cell.Script, cell.Input} {
			if text != nil {
				return "python", *text
			}
		}
	}
	return "python", arguments // as gpt-oss was trained: the code alone
}

func functionOf(recipient, input string) (name, arguments string) {
	if rest, ok := strings.CutPrefix(recipient, "browser."); ok {
		return browserPrefix + rest, input
	}
	if recipient == "python" {
		code, _ := json.Marshal(map[string]string{"code": input}) // text cannot fail
		return "python", string(code)
	}
	return strings.TrimPrefix(recipient, "functions."), input
}

// messages converts the request's messages, joining consecutive messages of the assistant.
func messages(r session.Request, field string) (all []message) {
	if r.Instructions != "" {
		all = append(all, textMessage("system", r.Instructions))
	}
	thought := ""
	open := false // the last message is the assistant's and can be extended
	assistant := func() *message {
		if !open {
			all = append(all, message{Role: "assistant"})
			open = true
		}
		return &all[len(all)-1]
	}
	hasResult := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == harmony.RoleTool {
			hasResult[m.CallID] = true
		}
	}
	for _, m := range r.Messages {
		text := m.Text()
		switch {
		case m.Role == harmony.RoleTool:
			open = false
			result := textMessage("tool", text)
			result.CallID = m.CallID
			all = append(all, result)
		case m.Role != harmony.RoleAssistant:
			open, thought = false, ""
			role := "user"
			if m.Role != harmony.RoleUser {
				role = "system"
			}
			all = append(all, textMessage(role, text))
		case m.Recipient != "":
			if !hasResult[m.CallID] { // it was cancelled: ports refuse a call without a result
				continue
			}
			c := client.Call{ID: m.CallID, Type: "function"}
			c.Function.Name, c.Function.Arguments = functionOf(m.Recipient, text)
			to := assistant()
			to.Calls = append(to.Calls, c)
			if field == "reasoning_content" {
				to.ReasoningContent += thought
			} else {
				to.Reasoning += thought
			}
			thought = ""
		case m.Channel == harmony.ChannelAnalysis:
			thought += text
		default:
			to := assistant()
			if to.Content != nil {
				text = *to.Content + text
			}
			to.Content = &text
		}
	}
	return all
}

func textMessage(role, text string) message { return message{Role: role, Content: &text} }
