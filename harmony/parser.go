// The parser: token ids, one at a time, to messages.
//
//	ExpectStart  --<|start|>-->                       InHeader
//	InHeader     --<|message|>-->                     InContent
//	InContent    --<|end|>, <|return|>, <|call|>-->   ExpectStart
//
// What must stay true: it follows OpenAI's library token by token, with the same state, text and
// errors after each (the traces in testdata/harmony). In content every token but the three that end
// it is text, <|start|> too. The work for a token does not depend on how many came before.

package harmony

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/harmony/token"
)

// State is where in a message the parser is.
type State uint8

const (
	ExpectStart State = iota // between messages
	InHeader                 // between <|start|> and <|message|>
	InContent
)

// String is the state's name in OpenAI's library.
func (s State) String() string { return [...]string{"ExpectStart", "Header", "Content"}[s] }

const replacement = "\uFFFD"

var (
	errHeaderEnd  = errors.New("the tokens end in a message header")
	errHeaderText = errors.New("the message header is not text")
)

// Parser reads messages from tokens as they are sampled. Make it with NewParser.
type Parser struct {
	strict   bool
	role     Role // of the message whose header is being read, where the prompt has given it
	state    State
	messages []Message

	header  []byte // in InHeader
	badText bool   // the header has a token outside the vocabulary

	message Message // in InContent: the header's fields
	content []byte  // text so far, always UTF-8
	pending []byte  // bytes that are not text yet
	// a token outside the vocabulary has come: nothing after it in this message can be read
	lost  bool
	delta string
	rest  string
}

// NewParser starts in the header of a message of that role, since the prompt already has <|start|>
// and the role (see RenderTurn); if role is "" it starts between messages.
//
// A parser that is not strict forgives one thing: a message that ends in its header. Its content is
// what the header has besides role and channel; an empty header is no message.
func NewParser(role Role, strict bool) *Parser {
	p := &Parser{strict: strict, role: role}
	if role != "" {
		p.state = InHeader
	}
	return p
}

// Push reads one token. After an error the token is not part of any message: after a header that
// ends badly the parser expects a start, else its state is unchanged.
func (p *Parser) Push(id int32) error {
	p.rest = ""
	switch p.state {
	case ExpectStart:
		if id != token.Start {
			return fmt.Errorf("token %d where <|start|> is expected", uint32(id))
		}
		p.state = InHeader
	case InHeader:
		switch {
		case id == token.Message:
			return p.endHeader()
		case ends(id) && !p.strict:
			return p.salvageHeader()
		}
		b := tokenText(id)
		p.badText = p.badText || b == nil
		p.header = append(p.header, b...)
	case InContent:
		if ends(id) {
			p.endContent()
			return nil
		}
		p.pushContent(id)
	}
	return nil
}

// Finish tells that no more tokens come: content is closed as if it had ended, a header is an
// error.
func (p *Parser) Finish() error {
	p.rest = ""
	switch p.state {
	case InHeader:
		return errHeaderEnd
	case InContent:
		p.endContent()
	}
	return nil
}

// ends tells whether id ends a message.
func ends(id int32) bool { return id == token.End || id == token.Return || id == token.Call }

// tokenText is the bytes that a token stands for in a header or in content; nil if it is unknown.
// Unlike package token it names 200018 by its number and knows 201088, one id beyond the
// vocabulary, as OpenAI's Harmony library does.
func tokenText(id int32) []byte {
	switch id {
	case 200018:
		return []byte("<|reserved_200018|>")
	case 201088:
		return []byte("<|reserved_201088|>")
	}
	return token.Get().TokenBytes(id)
}

func (p *Parser) headerText() (string, error) {
	if p.badText || !utf8.Valid(p.header) {
		return "", errHeaderText
	}
	return string(p.header), nil
}

// endHeader handles <|message|> in a header.
func (p *Parser) endHeader() error {
	text, err := p.headerText()
	p.state, p.header, p.badText = ExpectStart, p.header[:0], false
	if err != nil {
		return err
	}
	m, err := parseHeader(text, p.role)
	if err != nil {
		return err
	}
	p.role = ""
	p.state, p.message, p.content = InContent, m, nil
	return nil
}

// salvageHeader handles a message that ends in its header, for a parser that is not strict.
func (p *Parser) salvageHeader() error {
	if p.role != "" && (len(p.header) > 0 || p.badText) {
		text, err := p.headerText()
		if err != nil {
			return err
		}
		m, words, err := headerStart(text, p.role)
		if err != nil {
			return err
		}
		p.add(m, strings.Join(words, " "))
	}
	p.state, p.role, p.header, p.badText = ExpectStart, "", p.header[:0], false
	return nil
}

// pushContent handles a token of content. Bytes wait until they make characters; bytes that can
// never make one become U+FFFD, one for each token at most.
func (p *Parser) pushContent(id int32) {
	p.delta = ""
	b := tokenText(id)
	if p.lost = p.lost || b == nil; p.lost {
		return
	}
	p.pending = append(p.pending, b...)
	valid, wrong := token.ScanUTF8(p.pending)
	p.delta = string(p.pending[:valid])
	if wrong > 0 {
		p.delta += replacement
	}
	p.pending = p.pending[valid+wrong:]
	p.content = append(p.content, p.delta...)
}

// endContent handles the end of a message in its content.
func (p *Parser) endContent() {
	p.rest = token.Text(p.pending)
	if p.lost {
		p.rest = replacement + p.rest
	}
	p.add(p.message, string(p.content)+p.rest)
	p.state, p.message, p.content, p.pending, p.lost, p.delta = ExpectStart, Message{}, nil,
		p.pending[:0], false, ""
}

func (p *Parser) add(m Message, text string) {
	m.Content = []Content{{Type: KindText, Text: text}}
	p.messages = append(p.messages, m)
}

// Parse reads all messages of ids at once.
func Parse(ids []int32, role Role, strict bool) ([]Message, error) {
	p := NewParser(role, strict)
	for i, id := range ids {
		if err := p.Push(id); err != nil {
			return nil, fmt.Errorf("token %d: %w", i, err)
		}
	}
	if err := p.Finish(); err != nil {
		return nil, err
	}
	return p.Messages(), nil
}

// Messages returns the messages that have ended, oldest first. The caller must not change them.
func (p *Parser) Messages() []Message { return p.messages }
