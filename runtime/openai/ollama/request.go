// POST /api/chat and /api/generate: what a request of Ollama's API asks for.
//
// What must stay true: what is not said is OpenAI's default for this model, not Ollama's; a call
// without an id, which older clients send, finds its result by name and order.

package ollama

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/session"
)

type request struct {
	answer.Request
	thinking bool // show it
	generate bool // for /api/generate
}

func readOllama(o *answer.Object, history string) (*request, session.Request) {
	r := &request{thinking: true, Request: answer.Request{Model: o.Text("model"), N: 1,
		Stream: o.Boolean("stream", true), Lines: true, History: history}}
	if r.Model == "" {
		o.Get("model").Missing()
	}
	o.Get("keep_alive") // the server's own --keep-alive decides
	options := o.Object("options")
	if options != nil {
		options.Watch()
	}
	turn := session.Request{Params: answer.Sampling(options), Effort: "medium"}
	turn.Params.RepetitionPenalty = float32(options.Number("repeat_penalty", 0.01, 100,
		float64(turn.Params.RepetitionPenalty)))
	turn.Stop = answer.StopList(options, "stop")
	// -1 and -2 are Ollama's words for no limit
	turn.MaxTokens = max(0, options.Integer("num_predict", -2, 1<<30, 0))
	for _, name := range options.Unread() {
		if !slices.Contains(ollamaPlacement, name) {
			r.Ignored = append(r.Ignored, "options."+name)
		}
	}
	r.readThink(o, &turn)
	r.readFormat(o.Get("format"))
	return r, turn
}

// ollamaPlacement are options that say how a model is loaded, which the server's plan decides.
var ollamaPlacement = []string{"num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread",
	"use_mmap", "use_mlock", "numa", "low_vram"}

func (r *request) readThink(o *answer.Object, turn *session.Request) {
	switch v := o.Get("think"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.Bool:
		if r.thinking = o.Flag("think"); !r.thinking {
			turn.Effort = "low" // the model was not trained to answer without a thought
		}
	default:
		turn.Effort = answer.EffortLevel(v)
	}
}

func (r *request) readFormat(v answer.Value) {
	switch v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if text := v.Text(); text == "json" {
			r.Format.Final = jsonschema.AnyObject()
		} else if text != "" {
			v.Must(`"json" or a schema`)
		}
	default:
		r.Format = answer.FormatBy(v)
	}
}

// ReadChat reads a request for /api/chat.
func (p API) ReadChat(o *answer.Object) (*answer.Request, answer.Form) {
	r, turn := readOllama(o, "messages")
	turn.MaxReasoning = p.MaxReasoning
	talk := ollamaConversation(o)
	turn.Messages, turn.Instructions = talk.Messages, talk.Instructions("")
	tools := tools.Read(o)
	tools.Into(&turn)
	r.Ignored = append(r.Ignored, tools.Ignored...)
	r.Format.Into(&turn)
	r.Turns = []session.Request{turn}
	return &r.Request, &form{req: r}
}

func ollamaConversation(o *answer.Object) *answer.Conversation {
	talk := &answer.Conversation{}
	var list []answer.Value
	if o.Has("messages") {
		list = o.Get("messages").Messages()
	}
	if len(list) == 0 {
		o.Get("messages").Missing()
	}
	var open openCalls
	for _, v := range list {
		m := v.Object()
		if m == nil {
			continue
		}
		text := m.Text("content") + images(m)
		switch m.Text("role") {
		case "system", "developer":
			talk.Developer(text)
		case "user":
			talk.Messages = append(talk.Messages, session.User(text))
		case "assistant":
			for _, call := range ollamaAssistant(talk, m, text) {
				open.add(call)
			}
		case "tool":
			id, name := m.Text("tool_call_id"), m.Text("tool_name")
			call, ok := open.take(id, name)
			if !ok {
				m.Value().Invalid(": no call came before this result")
				continue
			}
			talk.Result(call, name, text)
		default:
			m.Get("role").Must("system, user, assistant or tool")
		}
	}
	return talk
}

// openCalls are calls without results, oldest first, by what a result says of its call.
type openCalls struct {
	ids      []string
	answered []bool
	by       map[openCall][]int // places in ids
}

// openCall is an id, a name, or nothing.
type openCall struct{ id, name string }

func (c *openCalls) add(call session.Message) {
	if c.by == nil {
		c.by = map[openCall][]int{}
	}
	name := strings.TrimPrefix(call.Recipient, "functions.")
	for _, key := range []openCall{{}, {id: call.CallID}, {name: name}} {
		c.by[key] = append(c.by[key], len(c.ids))
	}
	c.ids, c.answered = append(c.ids, call.CallID), append(c.answered, false)
}

// take returns the oldest call without a result that a result may belong to, and removes it.
func (c *openCalls) take(id, name string) (call string, ok bool) {
	key := openCall{id: id, name: name}
	if id != "" {
		key.name = ""
	}
	for list := c.by[key]; len(list) > 0; list = list[1:] {
		if at := list[0]; !c.answered[at] {
			c.answered[at], c.by[key] = true, list[1:]
			return c.ids[at], true
		}
	}
	delete(c.by, key)
	return "", false
}

// ollamaAssistant takes an earlier answer apart and returns its calls.
func ollamaAssistant(talk *answer.Conversation, m *answer.Object, text string) (
	calls []session.Message) {
	talk.Add(session.AssistantReasoning, m.Text("thinking"))
	var list []answer.Value
	if m.Has("tool_calls") {
		list = talk.Calls(m.Get("tool_calls"))
	}
	if len(list) == 0 {
		talk.Add(session.AssistantAnswer, text)
		return nil
	}
	talk.Add(session.AssistantCommentary, text)
	for _, v := range list {
		call := v.Object()
		f := call.Object("function")
		name, id := f.Text("name"), call.Text("id")
		if !answer.ToolName(name) {
			v.Complain(answer.Invalid(f.At("name"), "%s.function.name is %q, which is not a tool "+
				"name", v.Path, name))
			return nil
		}
		if id == "" {
			id = fmt.Sprint("call_", len(talk.Messages))
		}
		arguments := f.Get("arguments")
		if arguments.Kind() != jsondoc.Object {
			arguments.Wrong("an object")
		}
		c := session.FunctionCall(id, name, string(arguments.Raw))
		talk.Messages, calls = append(talk.Messages, c), append(calls, c)
	}
	return calls
}

// images refuses a message's images, or is the note that stands in their place.
func images(o *answer.Object) (note string) {
	if len(o.List("images")) == 0 {
		return ""
	}
	if o.LeavesImagesOut() {
		return answer.LeftOut("image")
	}
	o.Get("images").Unsupported("images", "the model reads text only")
	return ""
}

// ReadGenerate reads a request for /api/generate.
func (p API) ReadGenerate(o *answer.Object) (*answer.Request, answer.Form) {
	r, turn := readOllama(o, "prompt")
	r.generate = true
	for _, name := range []string{"suffix", "template"} {
		if o.Text(name) != "" {
			o.Get(name).Unsupported(name, "write the whole prompt, with raw")
		}
	}
	prompt, system := o.Text("prompt")+images(o), o.Text("system")
	if prompt == "" {
		o.Get("prompt").Invalid(" is empty; a model is loaded by the first request that has one")
	}
	if o.Flag("raw") {
		turn.Prompt, turn.Final = o.Get("prompt").EncodePrompt(prompt), r.Format.Final
	} else {
		turn.Messages = []session.Message{session.User(prompt)}
		turn.Instructions, turn.MaxReasoning = strings.TrimSpace(system), p.MaxReasoning
		r.Format.Into(&turn)
	}
	r.Turns = []session.Request{turn}
	return &r.Request, &form{req: r}
}
