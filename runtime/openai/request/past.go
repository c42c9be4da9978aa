// The past of a conversation, and how its parts are read if the model cannot read them directly.
//
// What must stay true: history is immutable for the client, so an unknown part or item never makes
// a conversation unusable: in the past it becomes text, a note or nothing. Only unanswered messages
// can be refused. A call of an unknown tool is read together with its result, or not at all.

package request

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

// maxDepth limits the depth at which text is looked for in a part.
const maxDepth = 8

// textMembers are the members of parts that have text, in the order of reading.
var textMembers = []string{"title", "filename", "uri", "url", "description", "context", "text",
	"refusal", "stdout", "stderr", "logs", "output", "result", "results", "resource", "source",
	"content", "data", "json", "error", "error_code", "tools", "name"}

// thoughtParts hold reasoning, which is not part of the text.
var thoughtParts = []string{"thinking", "redacted_thinking", "reasoning"}

// TextInside is the text in a part, item or block of any type, "" if it has none: of a search
// result, a document, a resource of an MCP server, or a shell's output.
func TextInside(o *fields.Object) (text string) {
	if o != nil {
		o.IgnoreFaults(func(v fields.Value) { text = textInside(v, maxDepth) })
	}
	return text
}

func textInside(v fields.Value, levels int) string {
	switch v.Kind() {
	case jsondoc.String:
		return v.Text()
	case jsondoc.Array:
		var texts []string
		for _, item := range v.List() {
			if levels > 0 {
				texts = append(texts, textInside(item, levels-1))
			}
		}
		return strings.Join(NotEmpty(texts), "\n")
	case jsondoc.Object:
	case jsondoc.Null:
		return ""
	default:
		return string(v.Raw)
	}
	o := v.Object()
	kind := o.Get("type")
	word := ""
	if kind.Kind() == jsondoc.String {
		word = kind.Text()
	}
	switch {
	case slices.Contains(thoughtParts, word):
		return ""
	case slices.ContainsFunc([]string{"image", "audio", "video", "screenshot"},
		func(what string) bool { return strings.Contains(word, what) }):
		return LeftOutNote(word)
	case o.Has("file_data") || o.Has("file"):
		return cmp.Or(fileText(o), LeftOutNote(word))
	case o.Has("blob"):
		return cmp.Or(FileContents(o, "", o.Text("blob")), LeftOutNote(cmp.Or(word, "blob")))
	case word == "base64":
		return cmp.Or(FileContents(o, "", o.Text("data")), LeftOutNote(word))
	}
	var texts []string
	for _, name := range textMembers {
		member := o.Get(name)
		if (name == "data" || name == "json") && member.Kind() == jsondoc.Object {
			texts = append(texts, string(member.Raw))
		} else if levels > 0 {
			texts = append(texts, textInside(member, levels-1))
		}
	}
	return strings.Join(NotEmpty(texts), "\n")
}

// foreignCall is a call of an unknown tool.
type foreignCall struct{ name, arguments string }

// argumentMembers are the members of calls that may hold arguments.
var argumentMembers = []string{"input", "arguments", "action", "operation", "queries", "code"}

// AddForeign records an earlier call of an unknown tool until its result is read. kind is the
// tool's name if the call has none.
func (c *Conversation) AddForeign(id, kind string, o *fields.Object) {
	call := foreignCall{name: kind, arguments: "{}"}
	if name := o.Get("name"); name.Kind() == jsondoc.String && ToolName(name.Text()) {
		call.name = name.Text()
	}
	for _, name := range argumentMembers {
		if v := o.Get(name); v.Kind() == jsondoc.String {
			call.arguments = v.Text()
			break
		} else if v.Kind() != jsondoc.Null {
			call.arguments = string(v.Raw)
			break
		}
	}
	if c.foreign == nil {
		c.foreign = map[string]foreignCall{}
	}
	c.foreign[id] = call
}

// IsAwaited tells that a foreign call waits for its result.
func (c *Conversation) IsAwaited(id string) bool {
	_, ok := c.foreign[id]
	return ok
}

// addForeign adds a foreign call when its result is read.
func (c *Conversation) addForeign(id string) {
	call, ok := c.foreign[id]
	if !ok {
		return
	}
	delete(c.foreign, id)
	if !ToolName(call.name) {
		call.name = "unknown"
	}
	c.Messages = append(c.Messages, session.FunctionCall(id, call.name, call.arguments))
}
