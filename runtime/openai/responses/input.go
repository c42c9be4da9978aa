// The input of a response, item by item, after the items of stored responses and conversations.

package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

type inputReader struct {
	store      records.Store
	conv       *request.Conversation
	hasHistory bool // a conversation exists already, so the input may be absent

	requests  map[string]bool           // ids of requests for approval
	approved  *tools.ApprovedCall       // in the end
	madeCalls map[string]bool           // requests for approval whose calls were made
	answers   map[string]*fields.Object // to requests for approval
	answersOf int                       // length of the list that made and answers index
	referred  int                       // bytes of items that were referred to
}

func (r *inputReader) read(o *fields.Object) (ignored []string) {
	v := o.Get("input")
	switch v.Kind() {
	case jsondoc.Null:
		if !r.hasHistory {
			o.Get("input").Missing()
		}
		return nil
	case jsondoc.String:
		r.conv.Add(session.User, v.Text()) // LM Studio's clients warm up with ""
		return nil
	case jsondoc.Array:
	default:
		v.WrongType("a string or an array of items")
		return nil
	}
	items := v.Messages()
	fields.ReadDated(items, func(i int, it fields.Value) {
		if kind := r.appendItem(it, items[i+1:]); kind != "" {
			ignored = append(ignored, kind)
		}
	})
	return ignored
}

func (r *inputReader) item(id string) (json.RawMessage, bool) { return getItem(r.store, id) }

// appendItem appends one item; after is the list of the following ones. It returns the item's type
// if the item was ignored.
func (r *inputReader) appendItem(v fields.Value, following []fields.Value) (ignored string) {
	o, conv := v.Object(), r.conv
	if o == nil {
		return ""
	}
	switch kind := o.Text("type"); kind {
	case "message", "":
		r.message(o, following)
	case "reasoning":
		conv.Add(session.AssistantReasoning, thoughtOf(o))
	case "function_call", "custom_tool_call":
		conv.ReadCall(o, o.Text("call_id"), false)
	case "function_call_output", "custom_tool_call_output":
		conv.Result(o.Text("call_id"), o.Text("name"), request.Content(o, "output", true))
	case "item_reference":
		id := o.Text("id")
		raw, ok := r.item(id)
		if !ok {
			o.AddFault(fields.NotFound(o.PathOf("id"), "Item", id))
			conv.Developer("[item " + id + ": not found]")
			return kind
		}
		if r.referred += len(raw); r.referred > answer.StandardBody {
			o.AddFault(fields.Refusal(http.StatusBadRequest, v.Path, fields.CodeContextLength,
				fmt.Sprintf("the items that the input refers to have more than %d MiB",
					answer.StandardBody>>20)))
			return ""
		}
		r.appendItem(v.WithRaw(raw), following)
	case "code_interpreter_call":
		readCode(conv, o)
	case "web_search_call":
		if !readSearch(conv, o) {
			return kind
		}
	case "mcp_call":
		readServerResult(conv, o, readServerCall(conv, o, o.Text("id")))
	case "mcp_list_tools":
	case "mcp_approval_request":
		r.requests[o.Text("id")] = true
		r.readAnswer(o, following)
	case "mcp_approval_response":
		r.checkAnswer(o)
	case "compaction", "compaction_summary":
		text, full := compactedText(o)
		if text == "" {
			return kind
		}
		s := session.Summary{Text: text}
		if full && len(conv.Messages) > 0 {
			conv.Replace(continuation(s, conv.Messages))
		} else {
			conv.Messages = append(conv.Messages, s.Message())
		}
	case "additional_tools": // offered by itemTools
	case "tool_search_output":
		r.foreignItem(o, kind)
	default:
		if !readClientCall(conv, o, kind) && !readClientResult(conv, o, kind) {
			return r.foreignItem(o, kind)
		}
	}
	return ""
}

// foreignItem reads a call of an unknown tool; its result is in the item or follows. It returns the
// item's type if the item is ignored.
func (r *inputReader) foreignItem(o *fields.Object, kind string) (ignored string) {
	id := cmp.Or(o.Text("call_id"), o.Text("id"))
	if name, is := strings.CutSuffix(kind, "_call"); is {
		r.conv.AddForeign(id, name, o)
		if !o.Has("results") && !o.Has("result") && !o.Has("output") && !o.Has("outputs") {
			return "" // its result follows
		}
	} else if !strings.HasSuffix(kind, "_output") || !r.conv.IsAwaited(id) {
		return kind
	}
	r.conv.Result(id, "", cmp.Or(request.TextInside(o), request.UnreadNote(kind)))
	return ""
}

func (r *inputReader) message(o *fields.Object, following []fields.Value) {
	r.conv.ReadMessage(o, "system, developer, user, assistant", func() {
		form := session.AssistantAnswer
		if isPreamble(o, following) {
			form = session.AssistantCommentary
		}
		r.conv.Add(form, request.Content(o, "content", false))
	})
}

// isPreamble tells whether a message of the assistant precedes a call: by its phase, or by the next
// item.
func isPreamble(o *fields.Object, following []fields.Value) bool {
	if phase := o.Text("phase"); phase != "" {
		return phase == "commentary"
	}
	for _, v := range following {
		switch kind := v.Object().Text("type"); {
		case kind == "reasoning":
		case strings.HasSuffix(kind, "_call"):
			return true
		default:
			return false
		}
	}
	return false
}

func thoughtOf(o *fields.Object) string {
	if text := texts(o.List("content")); text != "" {
		return text
	}
	if text := request.Unseal(o.Text("encrypted_content")); text != "" {
		return text
	}
	return texts(o.List("summary"))
}

func texts(parts []fields.Value) string {
	var list []string
	for _, p := range parts {
		list = append(list, p.Object().Text("text"))
	}
	return request.JoinParagraphs(list...)
}

// toolItems are the types of items that offer tools.
var toolItems = []string{"additional_tools", "tool_search_output"}

// itemTools are the items of the conversation that offer tools, oldest first.
func (r *responseRequest) itemTools(o *fields.Object) (items []*fields.Object) {
	offers := func(raw []byte) bool {
		return slices.ContainsFunc(toolItems, func(kind string) bool {
			return bytes.Contains(raw, []byte(kind))
		})
	}
	list := o.Values(r.input, "input")
	if v := o.Get("input"); v.Kind() == jsondoc.Array && offers(v.Raw) {
		list = append(list, v.Messages()...)
	}
	for _, v := range list {
		if !offers(v.Raw) {
			continue
		}
		if item := v.Object(); slices.Contains(toolItems, item.Text("type")) {
			items = append(items, item)
		}
	}
	return items
}
