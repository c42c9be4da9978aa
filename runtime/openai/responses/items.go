// From a turn's events to output items and the events of their stream.
//
// One item is open at a time. What must stay true, for streamed and other answers alike, since both
// are built here: every item that is added is done exactly once, or Codex would run a command
// twice. An incomplete call is never done, since agents run a call once it is done.
// Deltas are sent between the opening and the closing of their part. The finished response holds
// exactly the items that were done.

package responses

import (
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

// composer builds the items. send delivers an event of the stream; it must encode it before it
// returns.
type composer struct {
	response *response
	send     func(kind string, e streamEvent)
	text     strings.Builder       // of the open item
	logprobs []answer.TokenLogprob // of the open item
	open     outputItem            // nil: none; else the last of response.Output
	calls    map[int]*toolCall
	names    map[string]tools.ClientName
	seed     string // of the ids; "": they are random
	idCount  int    // ids so far

	tools        []*tools.Tool // that this process runs
	include      []string      // the request's
	summary      bool          // reasoning is shown as its own summary
	annotations  []annotation  // of the open message
	answerOffset int           // characters of the answer in earlier messages
}

func (c *composer) addEvent(e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		if _, ok := c.open.(*reasoningItem); !ok {
			c.openItem(&reasoningItem{itemHead: itemHead{c.repeatableID("rs_"), "reasoning"},
				Summary: []contentPart{}, Content: []contentPart{}, Status: "in_progress"})
		}
		c.text.WriteString(e.Text)
		event := c.inPart()
		event.Delta = &e.Text
		c.send(c.reasoningKind()+".delta", event)
	case session.Commentary:
		c.message("commentary", e.Text, nil)
	case session.Answer:
		c.message("final_answer", e.Text, answer.WireLogprobs(e.Logprobs))
	case session.CallStart:
		c.startCall(e)
	case session.CallArguments:
		if call := c.calls[e.Index]; call != nil {
			c.writeArguments(call, e.Text)
		}
	case session.CallEnd:
		if call := c.calls[e.Index]; call != nil {
			c.endCall(call, e.Arguments)
		}
	case session.ToolEnd:
		if call := c.calls[e.Index]; call != nil {
			delete(c.calls, e.Index)
			c.endTool(call, e)
		}
	}
}

// message adds text to the message of a phase, and opens it if it is not open.
func (c *composer) message(phase, text string, logprobs []answer.TokenLogprob) {
	if m, ok := c.open.(*messageItem); !ok || m.Phase != phase {
		c.openItem(&messageItem{itemHead: itemHead{c.repeatableID("msg_"), "message"},
			Role: "assistant", Phase: phase, Content: []contentPart{}, Status: "in_progress"})
	}
	c.text.WriteString(text)
	c.logprobs = append(c.logprobs, logprobs...)
	event := c.inPart()
	event.Delta, event.Logprobs = &text, answer.OrEmpty(logprobs)
	c.send("response.output_text.delta", event)
}

func (c *composer) openItem(item outputItem) {
	c.closeItem("completed")
	c.response.Output = append(c.response.Output, item)
	c.open, c.logprobs, c.annotations = item, nil, nil
	c.text.Reset()
	c.send("response.output_item.added", streamEvent{OutputIndex: c.index(), Item: item})
	if part, ok := c.part(); ok {
		event := c.inPart()
		event.Part = &part
		c.send(c.partKind()+".added", event)
	}
}

// closeIncomplete ends the open item at the end of the tokens. An incomplete call is left out.
func (c *composer) closeIncomplete() {
	c.dropTools()
	if _, ok := c.open.(*callItem); ok {
		c.response.Output = c.response.Output[:len(c.response.Output)-1]
		c.open = nil
	}
	c.closeItem("incomplete")
}

// closeItem ends the open item with the status completed or incomplete.
func (c *composer) closeItem(status string) {
	if c.open == nil {
		return
	}
	part, hasPart := c.part()
	done := c.inItem()
	if hasPart {
		done = c.inPart()
		done.Text, done.Logprobs = &part.Text, part.Logprobs
	}
	switch item := c.open.(type) {
	case *reasoningItem:
		c.send(c.reasoningKind()+".done", done)
		item.Encrypted, item.Status = request.Seal(part.Text), status
		if c.summary {
			item.Summary = []contentPart{part}
		} else {
			item.Content = []contentPart{part}
		}
	case *messageItem:
		c.send("response.output_text.done", done)
		item.Content, item.Status = []contentPart{part}, status
		if item.Phase == "final_answer" {
			c.answerOffset += utf8.RuneCountInString(part.Text)
		}
	case *callItem:
		if done.Arguments, done.Input = item.Arguments, item.Input; item.Input == nil {
			done.Name = item.Name
		}
		_, kind := argumentsOf(item)
		c.send(kind+".done", done)
		item.Status = status
	}
	if hasPart {
		event := c.inPart()
		event.Part = &part
		c.send(c.partKind()+".done", event)
	}
	c.send("response.output_item.done", streamEvent{OutputIndex: c.index(), Item: c.open})
	c.open = nil
}

// part is the open item's only part so far; calls have none.
func (c *composer) part() (contentPart, bool) {
	switch c.open.(type) {
	case *reasoningItem:
		part := contentPart{Type: "reasoning_text", Text: c.text.String()}
		if c.summary {
			part.Type = "summary_text"
		}
		return part, true
	case *messageItem:
		part := outputText(c.text.String(), c.logprobs)
		if len(c.annotations) > 0 {
			part.Annotations = &c.annotations
		}
		return part, true
	}
	return contentPart{}, false
}

func (c *composer) index() *int {
	return new(len(c.response.Output) - 1)
}

// inItem is an event of the open item, inPart one of its part.
func (c *composer) inItem() streamEvent {
	return streamEvent{ItemID: c.open.head().ID, OutputIndex: c.index()}
}

func (c *composer) inPart() streamEvent {
	e := c.inItem()
	if c.summarizing() {
		e.SummaryIndex = new(int)
	} else {
		e.ContentIndex = new(int)
	}
	return e
}

func (c *composer) summarizing() bool {
	_, ok := c.open.(*reasoningItem)
	return ok && c.summary
}

func (c *composer) partKind() string {
	if c.summarizing() {
		return "response.reasoning_summary_part"
	}
	return "response.content_part"
}

func (c *composer) reasoningKind() string {
	if c.summary {
		return "response.reasoning_summary_text"
	}
	return "response.reasoning_text"
}
