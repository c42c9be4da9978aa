// POST /api/chat and /api/generate: what a request of Ollama's API asks for.
//
// What must stay true: what is not said is OpenAI's default for this model, not Ollama's; a call
// without an id, which older clients send, finds its result by name and order.

package openai

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	jsonschema "github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/session"
)

type ollamaRequest struct {
	request
	thinking bool // show it
	generate bool // for /api/generate
}

func readOllama(o *object, history string) (*ollamaRequest, session.Request) {
	r := &ollamaRequest{thinking: true, request: request{model: o.text("model"), n: 1,
		stream: o.boolean("stream", true), lines: true, history: history}}
	if r.model == "" {
		o.get("model").missing()
	}
	o.get("keep_alive") // the server's own --keep-alive decides
	options := o.object("options")
	if options != nil {
		options.watch()
	}
	turn := session.Request{Params: sampling(options), Effort: "medium"}
	turn.Params.RepetitionPenalty = float32(options.number("repeat_penalty", 0.01, 100,
		float64(turn.Params.RepetitionPenalty)))
	turn.Stop = stopList(options, "stop")
	// -1 and -2 are Ollama's words for no limit
	turn.MaxTokens = max(0, options.integer("num_predict", -2, 1<<30, 0))
	for _, name := range options.unread() {
		if !slices.Contains(ollamaPlacement, name) {
			r.ignored = append(r.ignored, "options."+name)
		}
	}
	r.readThink(o, &turn)
	r.readFormat(o.get("format"))
	return r, turn
}

// ollamaPlacement are options that say how a model is loaded, which the server's plan decides.
var ollamaPlacement = []string{"num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread",
	"use_mmap", "use_mlock", "numa", "low_vram"}

func (r *ollamaRequest) readThink(o *object, turn *session.Request) {
	switch v := o.get("think"); v.Kind() {
	case jsondoc.Null:
	case jsondoc.Bool:
		if r.thinking = o.flag("think"); !r.thinking {
			turn.Effort = "low" // the model was not trained to answer without a thought
		}
	default:
		turn.Effort = effortLevel(v)
	}
}

func (r *ollamaRequest) readFormat(v value) {
	switch v.Kind() {
	case jsondoc.Null:
	case jsondoc.String:
		if text := v.text(); text == "json" {
			r.format.final = jsonschema.AnyObject()
		} else if text != "" {
			v.must(`"json" or a schema`)
		}
	default:
		r.format = formatBy(v)
	}
}

func (p ollamaAPI) readChat(o *object) (*request, form) {
	r, turn := readOllama(o, "messages")
	turn.MaxReasoning = p.MaxReasoning
	talk := ollamaConversation(o)
	turn.Messages, turn.Instructions = talk.Messages, talk.instructions("")
	tools := readOffer(o)
	tools.into(&turn)
	r.ignored = append(r.ignored, tools.ignored...)
	r.format.into(&turn)
	r.turns = []session.Request{turn}
	return &r.request, &ollamaForm{req: r}
}

func ollamaConversation(o *object) *conversation {
	talk := &conversation{}
	var list []value
	if o.has("messages") {
		list = o.get("messages").messages()
	}
	if len(list) == 0 {
		o.get("messages").missing()
	}
	var open openCalls
	for _, v := range list {
		m := v.object()
		if m == nil {
			continue
		}
		text := m.text("content") + images(m)
		switch m.text("role") {
		case "system", "developer":
			talk.developer(text)
		case "user":
			talk.Messages = append(talk.Messages, session.User(text))
		case "assistant":
			for _, call := range ollamaAssistant(talk, m, text) {
				open.add(call)
			}
		case "tool":
			id, name := m.text("tool_call_id"), m.text("tool_name")
			call, ok := open.take(id, name)
			if !ok {
				m.value().invalid(": no call came before this result")
				continue
			}
			talk.result(call, name, text)
		default:
			m.get("role").must("system, user, assistant or tool")
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
func ollamaAssistant(talk *conversation, m *object, text string) (calls []session.Message) {
	talk.add(session.AssistantReasoning, m.text("thinking"))
	var list []value
	if m.has("tool_calls") {
		list = talk.calls(m.get("tool_calls"))
	}
	if len(list) == 0 {
		talk.add(session.AssistantAnswer, text)
		return nil
	}
	talk.add(session.AssistantCommentary, text)
	for _, v := range list {
		call := v.object()
		f := call.object("function")
		name, id := f.text("name"), call.text("id")
		if !toolName(name) {
			v.complain(invalid(f.at("name"), "%s.function.name is %q, which is not a tool name",
				v.Path, name))
			return nil
		}
		if id == "" {
			id = fmt.Sprint("call_", len(talk.Messages))
		}
		arguments := f.get("arguments")
		if arguments.Kind() != jsondoc.Object {
			arguments.wrong("an object")
		}
		c := session.FunctionCall(id, name, string(arguments.Raw))
		talk.Messages, calls = append(talk.Messages, c), append(calls, c)
	}
	return calls
}

// images refuses a message's images, or is the note that stands in their place.
func images(o *object) (note string) {
	if len(o.list("images")) == 0 {
		return ""
	}
	if o.leavesImagesOut() {
		return leftOut("image")
	}
	o.get("images").unsupported("images", "the model reads text only")
	return ""
}

func (p ollamaAPI) readGenerate(o *object) (*request, form) {
	r, turn := readOllama(o, "prompt")
	r.generate = true
	for _, name := range []string{"suffix", "template"} {
		if o.text(name) != "" {
			o.get(name).unsupported(name, "write the whole prompt, with raw")
		}
	}
	prompt, system := o.text("prompt")+images(o), o.text("system")
	if prompt == "" {
		o.get("prompt").invalid(" is empty; a model is loaded by the first request that has one")
	}
	if o.flag("raw") {
		turn.Prompt, turn.Final = o.get("prompt").encodePrompt(prompt), r.format.final
	} else {
		turn.Messages = []session.Message{session.User(prompt)}
		turn.Instructions, turn.MaxReasoning = strings.TrimSpace(system), p.MaxReasoning
		r.format.into(&turn)
	}
	r.turns = []session.Request{turn}
	return &r.request, &ollamaForm{req: r}
}
