// POST /api/chat and /api/generate: the request of Ollama's API.
//
// What must stay true: defaults are OpenAI's for this model, not Ollama's.

package ollama

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

type ollamaRequest struct {
	request.Draft
	offer      tools.Offer
	conv       request.Conversation
	thinking   bool // show it
	generate   bool // for /api/generate
	prompt     string
	system     string
	raw        bool   // the prompt is continued as text
	loadReason string // a request without an answer: load or unload; "": an answer
}

// ChatParameters are the rows of /api/chat.
func ChatParameters() []fields.Parameter { return new(ollamaRequest).chatParameters() }

// GenerateParameters are the rows of /api/generate.
func GenerateParameters() []fields.Parameter { return new(ollamaRequest).generateParameters() }

func (r *ollamaRequest) chatParameters() []fields.Parameter {
	return append(r.sharedRows(), fields.Row("messages objects", r.readMessages),
		fields.Row("tools objects", r.readTools), fields.Row("tool_choice", nil))
}

func (r *ollamaRequest) generateParameters() []fields.Parameter {
	return append(r.sharedRows(), fields.Text("prompt", &r.prompt),
		fields.Text("system", &r.system), fields.Boolean("raw", false, &r.raw),
		fields.RefusedText("suffix", "write the whole prompt, with raw"),
		fields.RefusedText("template", "write the whole prompt, with raw"),
		fields.Row("images", nil))
}

func (r *ollamaRequest) sharedRows() []fields.Parameter {
	top := 0
	return append(r.Constraints("format any"),
		fields.Row("model! string", func(o *fields.Object, name string) {
			if r.Model = o.Text(name); r.Model == "" {
				o.Get(name).Missing()
			}
		}),
		fields.Boolean("stream", true, &r.Stream),
		fields.Integer("top_logprobs", 0, sample.MaxTopLogprobs, 0, &top),
		fields.Row("logprobs boolean", func(o *fields.Object, name string) {
			if o.Flag(name) {
				r.Turn.Params.Logprobs = top
			}
		}),
		fields.Row("options object", r.readOptions),
		fields.Row("think any", r.readThink),
		fields.Row("keep_alive any", nil)) // the server's own --keep-alive decides
}

// loadOnly makes a request without a prompt one that loads the model: one token is computed and
// discarded. With keep_alive 0 it asks to unload it, which only the server decides.
func (r *ollamaRequest) loadOnly(o *fields.Object) {
	r.loadReason = "load"
	alive := strings.Trim(string(o.Get("keep_alive").Raw), `"`) // 0, "0s", of Python's client 0.0
	if n, err := strconv.ParseFloat(strings.TrimRight(alive, "smh"), 64); err == nil && n == 0 {
		r.loadReason, r.Dry, r.Ignored = "unload", true, append(r.Ignored, "keep_alive")
	}
	turn := request.NewDraft("prompt", 0).Turn
	turn.Prompt, turn.MaxTokens, turn.Effort = o.Get("model").EncodePrompt("."), 1, "low"
	r.Turns = []session.Request{turn}
}

// options are the rows of the object of this name.
func (r *ollamaRequest) options() []fields.Parameter {
	return slices.Concat(r.Sampling(), []fields.Parameter{
		r.Number("repetition_penalty").WithName("repeat_penalty"),
		r.Stop("stop text-or-strings"),
		fields.Row("num_predict integer", func(o *fields.Object, name string) {
			// -1 and -2 are Ollama's values for no limit
			r.Turn.MaxTokens = max(0, o.Integer(name, -2, 1<<30, 0))
		})}, fields.NoEffect(ollamaPlacement...), r.Constraints())
}

func newRequest(history string, bound int) *ollamaRequest {
	r := &ollamaRequest{Draft: request.NewDraft(history, bound), thinking: true}
	r.NDJSON = true
	return r
}

func (r *ollamaRequest) readOptions(o *fields.Object, name string) {
	options := o.Object(name)
	fields.Read(options, r.options())
	for _, unknown := range options.Unread() {
		r.Ignored = append(r.Ignored, name+"."+unknown)
	}
}

// ollamaPlacement are options for loading a model, which the server's plan decides.
var ollamaPlacement = []string{"num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread",
	"use_mmap", "use_mlock", "numa", "low_vram"}

func (r *ollamaRequest) readThink(o *fields.Object, name string) {
	switch v := o.Get(name); v.Kind() {
	case jsondoc.Null:
	case jsondoc.Bool:
		if r.thinking = o.Flag(name); !r.thinking {
			r.Turn.Effort = "low" // the model was not trained to answer without reasoning
		}
	default:
		r.SetEffort(v)
	}
}

func (p API) ReadChat(o *fields.Object) (*answer.Request, answer.Form) {
	r := newRequest("messages", p.MaxReasoning)
	fields.Read(o, r.chatParameters())
	r.Ignored = append(r.Ignored, r.offer.Ignored...)
	r.Turn.Messages = r.conv.Messages
	r.Instruct(r.conv.Instructions(""))
	r.offer.ApplyTo(&r.Turn)
	r.Turns = []session.Request{r.Turn}
	if !o.Has("messages") || o.Get("messages").Count(1) == 0 && o.Fault() == nil {
		r.loadOnly(o)
	}
	return &r.Request, &form{req: r}
}

func (r *ollamaRequest) readTools(o *fields.Object, _ string) { r.offer = tools.Read(o, "") }

func (r *ollamaRequest) readMessages(o *fields.Object, name string) {
	conv := &r.conv
	var list []fields.Value
	if o.Has(name) {
		list = o.Get(name).Messages()
	}
	fields.ReadDated(list, func(_ int, v fields.Value) {
		m := v.Object()
		if m == nil {
			return
		}
		text := withImages(m, request.Content(m, "content", false))
		switch m.Text("role") {
		case "system", "developer":
			conv.Developer(text)
		case "user":
			conv.Messages = append(conv.Messages, session.User(text))
		case "assistant":
			conv.Add(session.AssistantReasoning, m.Text("thinking"))
			conv.ReadAnswer(m, text, true)
		case "tool":
			conv.Result(m.Text("tool_call_id"), m.Text("tool_name"), text)
		default:
			m.Get("role").MustBe("system, user, assistant or tool")
			conv.Stray(m)
		}
	})
}

// withImages adds a note to the text of a message with images; images alone are refused.
func withImages(o *fields.Object, text string) string {
	note := request.AttachedNote("image")
	switch images := o.Get("images"); {
	case len(o.List("images")) == 0:
		return text
	case o.IsPast():
		note = request.UnreadNote("image")
	case strings.TrimSpace(text) == "" && !o.IgnoresImages():
		images.Unsupported("images", "the model reads text only")
	default:
		images.Note("image")
	}
	return strings.TrimLeft(text+"\n"+note, "\n")
}

func (p API) ReadGenerate(o *fields.Object) (*answer.Request, answer.Form) {
	r := newRequest("prompt", 0)
	r.generate = true
	fields.Read(o, r.generateParameters())
	prompt := withImages(o, r.prompt)
	if prompt == "" {
		r.loadOnly(o)
		return &r.Request, &form{req: r}
	}
	if r.raw {
		r.Turn.Effort = cmp.Or(r.Turn.Effort, "medium") // without use
		r.Turn.Prompt, r.Turn.Final = o.Get("prompt").EncodePrompt(prompt), r.Format.Final
	} else {
		r.Turn.Messages = []session.Message{session.User(prompt)}
		r.Turn.MaxReasoning = p.MaxReasoning
		r.Instruct(strings.TrimSpace(r.system))
	}
	r.Turns = []session.Request{r.Turn}
	return &r.Request, &form{req: r}
}
