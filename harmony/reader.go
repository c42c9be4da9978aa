// The reader: any token ids, one at a time, to messages.
//
//	ExpectStart  --<|start|>-->                       InHeader
//	InHeader     --<|message|>-->                     InContent
//	InContent    --<|end|>, <|return|>, <|call|>-->   ExpectStart
//
// OpenAI's library refuses some outputs of a model at temperature 1. Reader accepts everything.
// What must stay true:
//
//   - legal tokens give the messages of OpenAI's library, with the same state, text and fields
//     after each token (the traces in testdata/harmony);
//   - it never fails. Faults are counted by kind: tokens that the library refuses, and texts or
//     names that it accepts and no client could use;
//   - no byte is lost: the ordinary bytes of a message's tokens are its Header and its Body, in
//     that order, and the messages' tokens are adjacent;
//   - the text of a special token is never part of a message;
//   - the work for a token does not depend on the number of earlier ones.

package harmony

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/harmony/token"
)

// State is the reader's position in a message.
type State uint8

const (
	ExpectStart State = iota // between messages
	InHeader                 // between <|start|> and <|message|>
	InContent
)

// String is the state's name in OpenAI's library.
func (s State) String() string { return [...]string{"ExpectStart", "Header", "Content"}[s] }

func isEnd(id int32) bool { return id == token.End || id == token.Return || id == token.Call }

// maxHeader is the length in bytes above which a header is treated as text without one. Tools'
// names have at most 128; a streaming reader waits this long for a text that began without a
// header.
const maxHeader = 512

// ReadMessage is a message as read. Its content is one text: Body, with U+FFFD for invalid UTF-8.
type ReadMessage struct {
	Message
	From, To int    // its tokens are those from From to before To of all pushed
	Header   []byte // the ordinary bytes of its header
	Body     []byte // the ordinary bytes of its content
	End      int32  // <|end|>, <|return|> or <|call|>; 0 without one of them
	Faults   Faults
}

// Reader reads messages from tokens as they are sampled. Create it with NewReader.
type Reader struct {
	state    State
	messages []ReadMessage
	pushed   int
	faults   Faults // of all tokens
	open     ReadMessage
	role     Role         // of the open header, if it may omit it
	marks    []headerMark // of the open header
	decoder  token.StreamDecoder
	delta    string
	rest     string
}

// headerMark is a special token inside a header, at an offset in the header's bytes.
type headerMark struct {
	pos int
	id  int32
}

// NewReader starts in the header of a message of that role, because the prompt already has
// <|start|> and the role. If role is "" it starts between messages.
func NewReader(role Role) *Reader {
	r := &Reader{role: role}
	if role != "" {
		r.state = InHeader
	}
	return r
}

func (r *Reader) Push(id int32) {
	r.pushed++
	r.delta, r.rest = "", ""
	if id >= 0 && id < token.StartOfText {
		r.text(token.Get().TokenBytes(id))
		return
	}
	switch {
	case id < 0 || id >= token.VocabSize:
		r.fault(FaultToken)
	case id == token.Start:
		switch {
		case r.state == InContent:
			r.fault(FaultEnd)
			r.endContent(0, r.pushed-1)
		case r.state == InHeader && len(r.open.Header)+len(r.marks) > 0:
			r.headerIsText()
			r.endContent(0, r.pushed-1)
		case r.state == InHeader: // <|start|> after <|start|>
			r.fault(FaultStray)
		}
		r.role, r.state = "", InHeader
	case isEnd(id):
		switch r.state {
		case ExpectStart:
			r.fault(FaultStray)
		case InHeader:
			r.endHeader(id)
		case InContent:
			r.endContent(id, r.pushed)
		}
	case id == token.Channel:
		// the next header without an end or <|start|> before it: the same role continues
		if r.state == InContent {
			r.fault(FaultEnd)
			role := r.open.Role
			r.endContent(0, r.pushed-1)
			r.role, r.state = role, InHeader
		}
		r.begin()
		r.mark(id)
	case id == token.Constrain && r.state == InHeader:
		r.mark(id)
	case id == token.Message && r.state != InContent:
		r.begin()
		r.beginContent(readHeader(r.open.Header, r.marks, r.role))
	default:
		r.fault(FaultStray)
	}
}

// Finish ends the input and closes an open message; that is no fault, because a limit can cut
// anywhere.
func (r *Reader) Finish() {
	r.delta, r.rest = "", ""
	switch {
	case r.state == InContent:
		r.endContent(0, r.pushed)
	case r.state == InHeader && len(r.open.Header)+len(r.marks) > 0:
		r.cutHeader()
	case len(r.messages) > 0:
		r.messages[len(r.messages)-1].To = r.pushed
	}
	r.state = ExpectStart
}

func (r *Reader) text(b []byte) {
	if r.state == InContent {
		r.content(b)
		return
	}
	r.begin()
	if r.open.Header = append(r.open.Header, b...); len(r.open.Header) > maxHeader {
		r.headerIsText()
	}
}

// begin opens a header without <|start|>.
func (r *Reader) begin() {
	if r.state != ExpectStart {
		return
	}
	r.fault(FaultStart)
	r.role, r.state = RoleAssistant, InHeader
}

func (r *Reader) content(b []byte) {
	r.open.Body = append(r.open.Body, b...)
	r.delta += r.decoder.PushBytes(b)
}

func (r *Reader) mark(id int32) {
	r.marks = append(r.marks, headerMark{len(r.open.Header), id})
	if len(r.marks) > maxHeader {
		r.headerIsText()
	}
}

func (r *Reader) beginContent(h header) {
	for k, n := range h.faults {
		r.faults[k] += n
		r.open.Faults[k] += n
	}
	r.open.Message = h.message
	r.state, r.marks = InContent, r.marks[:0]
	if text := r.open.Header[h.text:]; len(text) > 0 {
		r.open.Header = r.open.Header[:h.text:h.text]
		r.content(text)
	}
}

// headerIsText continues with content when a header has no <|message|> or is too long to be one.
func (r *Reader) headerIsText() {
	r.fault(FaultMessage)
	r.beginContent(splitHeader(r.open.Header, r.marks, r.role))
}

// endHeader handles a message that ends in its header. An empty header is not a message.
func (r *Reader) endHeader(id int32) {
	if len(r.open.Header)+len(r.marks) == 0 {
		r.fault(FaultMessage)
		r.role, r.state = "", ExpectStart
		return
	}
	r.headerIsText()
	r.endContent(id, r.pushed)
}

// cutHeader handles the end of the input in a header: words that can only be text are content; the
// rest may have become a header and is not for the user.
func (r *Reader) cutHeader() {
	h := splitHeader(r.open.Header, r.marks, r.role)
	if unfinishedHeader(r.open.Header[h.text:], len(r.marks) > 0, r.role) {
		h.text, h.faults = len(r.open.Header), Faults{}
	} else {
		r.fault(FaultMessage)
	}
	r.beginContent(h)
	r.endContent(0, r.pushed)
}

// endContent ends a message in its content. id is the end token, 0 if the next message or the end
// of the input ended it. The message's tokens are those before to.
func (r *Reader) endContent(id int32, to int) {
	// if a header has just become text, all of it is rest
	r.rest, r.delta = r.delta+r.decoder.Flush(), ""
	m := r.open
	m.Content = []Content{{Type: KindText, Text: token.Text(m.Body)}}
	m.End, m.To = id, to
	r.messages = append(r.messages, m)
	r.open = ReadMessage{From: to}
	r.state, r.role, r.marks = ExpectStart, "", r.marks[:0]
}

func (r *Reader) fault(f Fault) {
	r.faults[f]++
	r.open.Faults[f]++
}

// ReadAll reads all of ids at once.
func ReadAll(ids []int32, role Role) ([]ReadMessage, Faults) {
	r := NewReader(role)
	for _, id := range ids {
		r.Push(id)
	}
	r.Finish()
	return r.Messages(), r.Faults()
}

// ReadLegal reads all of ids at once, and returns an error at the first fault or if they end in a
// header.
func ReadLegal(ids []int32, role Role) (messages []Message, err error) {
	r := NewReader(role)
	for i, id := range ids {
		if r.Push(id); r.faults.Total() > 0 {
			return nil, fmt.Errorf("token %d is not legal here: %s", i, r.faults)
		}
	}
	if r.state == InHeader {
		return nil, errors.New("the tokens end in a message header")
	}
	r.Finish()
	for _, m := range r.messages {
		messages = append(messages, m.Message)
	}
	return messages, nil
}

func (r *Reader) State() State { return r.state }

// Messages returns the finished messages, oldest first. The caller must not change them.
func (r *Reader) Messages() []ReadMessage { return r.messages }

// Current is the message whose content is being read, without the content; empty in other states.
func (r *Reader) Current() Message {
	if r.state != InContent {
		return Message{}
	}
	return r.open.Message
}

func (r *Reader) Faults() Faults { return r.faults }

// Delta is the text that the last token added to the open message.
func (r *Reader) Delta() string { return r.delta }

// Rest is the text that the last token, or Finish, added to the message that it ended: half a
// character, or words that looked like a header until then.
func (r *Reader) Rest() string { return r.rest }

// Complete reports whether the message is complete: it has an end token, or it is a call whose
// arguments are complete JSON and only its end is missing.
func (m *ReadMessage) Complete() bool {
	return m.End != 0 || m.Calls() && json.Valid(m.Body)
}

// The faults of sampled tokens. A fault is counted and never stops the reading; the counts are a
// metric of the port, because a failing model or sampler shows there first.

// Fault is a kind of violation of legal Harmony.
type Fault uint8

const (
	FaultStart Fault = iota // a message begins without <|start|>
	FaultRole               // a header has no role, or an unknown one
	// a channel mark without a channel, an unknown channel, or two of them
	FaultChannel
	FaultHeader  // words without a place in a header
	FaultMessage // a header ends without <|message|>
	FaultEnd     // a message continues in the next one without an end
	FaultStray   // a special token out of place
	FaultToken   // an id outside the vocabulary
	faultKinds
)

// String is the fault's name in the metrics.
func (f Fault) String() string {
	return [...]string{"start", "role", "channel", "header", "message", "end", "stray", "token"}[f]
}

type Faults [faultKinds]int

func (f Faults) String() string {
	var kinds []string
	for k, n := range f {
		if n > 0 {
			kinds = append(kinds, Fault(k).String())
		}
	}
	return strings.Join(kinds, " ")
}

func (f Faults) Total() int {
	n := 0
	for _, k := range f {
		n += k
	}
	return n
}

func (f Faults) Plus(g Faults) Faults {
	for k := range f {
		f[k] += g[k]
	}
	return f
}
