// The script of the model. It is in the prompt: the last user message with directives sets the
// following turns, so a test in any language, or an agent's command line, can set the output.
//
//	[[think TEXT]]     reasoning
//	[[note TEXT]]      a preamble: text before a call
//	[[call NAME TEXT]] a call, which ends the turn; NAME is a function, *, browser.X or python
//	[[say TEXT]]       the answer, which ends the turn
//	[[loop TEXT]]      the text without end, in the reasoning before a say, else in the answer
//	[[fail]]           the logits are NaN: this request fails
//	[[slow 20ms]]      each token takes so long from here on
//
// The first turn ends with the first call, the next one, after the tool's result, with the second,
// and so on. Without directives the model is an agent: it calls the first offered function, then
// answers. If the grammar forbids the script, the shortest legal output is chosen: an empty string,
// the first of an enumeration.

package scripttest

import (
	"iter"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/harmony/token"
)

// fails marks NaN logits in a plan.
const fails = -1

// endless is how often a loop repeats its text.
const endless = 4000

// plan is the output of one turn.
type plan struct {
	tokens []int32
	slow   time.Duration
}

// token is the plan's token at a place, or fails after its end.
func (p *plan) token(at int32) int32 {
	if int(at) >= len(p.tokens) {
		return fails
	}
	return p.tokens[at]
}

// ranked lists the possible next tokens, the best first: the plan's; a shorter token of the same
// text; then the shortest way to the end.
func (p *plan) ranked(at int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if int(at) < len(p.tokens) {
			id := p.tokens[at]
			if !yield(id) {
				return
			}
			if id != fails {
				text := token.Get().TokenBytes(id)
				for n := len(text) - 1; n > 0; n-- {
					if short := token.Get().EncodeBytes(nil, text[:n]); len(short) == 1 &&
						!yield(short[0]) {
						return
					}
				}
			}
		}
		for id := range offScript() {
			if !yield(id) {
				return
			}
		}
	}
}

// enders lead to the end of any open string or object, the best first: a quote before a brace,
// which a string may contain.
var enders = sync.OnceValue(func() (list []int32) {
	for _, text := range []string{"<|return|>", "<|call|>", "<|end|>", "<|message|>", `"`, `":`, "}", "]", ":", " to", "=",
		"comment", "commentary", "final", ",", "1", "0", "a"} {
		list = append(list, token.Get().EncodeSpecial(nil, text, nil)[0])
	}
	return list
})

func offScript() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, id := range enders() {
			if !yield(id) {
				return
			}
		}
		for id := range int32(token.VocabSize) {
			if !yield(id) {
				return
			}
		}
	}
}

const (
	start = "<|start|>assistant"
	end   = "<|end|>"
)

// planFor finds the plan of the turn that ids end in, and the place in it. A turn that deviates
// from its script gets nil, unless its open message is one of the script's.
func planFor(ids []int32) (*plan, int32) {
	text := string(token.Get().Decode(nil, ids))
	history, said := turnOf(text)
	want, slow := script(history)
	rest, ok := strings.CutPrefix(want, said)
	if !ok {
		open := said[max(0, strings.LastIndex(said, "<|channel|>")):]
		at := -1
		if strings.Contains(open, "<|message|>") {
			at = strings.LastIndex(want, open)
		}
		if at < 0 {
			return nil, 0
		}
		rest = want[at+len(open):]
	}
	return &plan{tokens: encoded(rest), slow: slow}, 0
}

// known caches encoded texts: many clients of a test send the same.
var known struct {
	sync.Mutex
	texts map[string][]int32
}

// encoded returns the tokens of the remaining text.
func encoded(text string) []int32 {
	known.Lock()
	defer known.Unlock()
	ids, ok := known.texts[text]
	if !ok {
		if known.texts == nil || len(known.texts) > 100 {
			known.texts = map[string][]int32{}
		}
		before, _, failed := strings.Cut(text, "<fails>")
		if ids = token.Get().EncodeSpecial(nil, before, nil); failed {
			ids = append(ids, fails)
		}
		known.texts[text] = ids
	}
	return ids
}

var message = regexp.MustCompile(`(?s)<\|start\|>(.*?)<\|message\|>(.*?)(?:<\|end\|>|<\|call\|>|<\|return\|>|$)`)

// turnOf splits a conversation before the model's last turn.
func turnOf(text string) (history [][]string, said string) {
	for _, at := range message.FindAllStringSubmatchIndex(text, -1) {
		header := text[at[2]:at[3]]
		if !strings.HasPrefix(header, "assistant") {
			history = append(history, []string{header, text[at[4]:at[5]]})
			said = text[at[1]:]
		} else {
			history = append(history, []string{header, text[at[4]:at[5]]})
		}
	}
	for len(history) > 0 && strings.HasPrefix(history[len(history)-1][0], "assistant") {
		history = history[:len(history)-1]
	}
	_, said, _ = strings.Cut(said, start)
	return history, said
}

var (
	directive = regexp.MustCompile(`(?s)\[\[(think|note|call|say|loop|fail|slow)\b ?(.*?)\]\](?:\s|$)`)
	offered   = regexp.MustCompile(`(?m)^type ([\w.-]+) = \((_: string\))?`)
)

type function struct {
	name string
	text bool // a custom tool, whose input is no JSON
}

// script is the next turn in Harmony, without the first start of a message.
func script(history [][]string) (says string, slow time.Duration) {
	var tools []function
	var lines [][]string
	results, spoken := 0, false
	for _, m := range history {
		header, text := m[0], m[1]
		switch {
		case header == "developer" || header == "system":
			for _, f := range offered.FindAllStringSubmatch(text, -1) {
				tools = append(tools, function{f[1], f[2] != ""})
			}
		case header == "user":
			spoken = false
			if found := directive.FindAllStringSubmatch(text+" ", -1); found != nil {
				lines, results = found, 0
			}
		case strings.HasPrefix(header, "assistant"):
		default:
			results++
			spoken = true
		}
	}
	if lines == nil {
		lines = [][]string{{"", "think", "They ask, I look."}, {"", "say", "Done: all is well."}}
		if len(tools) > 0 && !spoken {
			lines[1] = []string{"", "call", "* {}"}
		}
		results = 0
	}
	return turn(lines, results, tools)
}

// turn is the part of the directives after a number of results.
func turn(lines [][]string, results int, tools []function) (says string, slow time.Duration) {
	var messages []string
	add := func(header, text, ends string) {
		messages = append(messages, header+"<|message|>"+text+ends)
	}
	for i, line := range lines {
		word, text := line[1], line[2]
		if word == "slow" {
			slow, _ = time.ParseDuration(text)
			continue
		}
		name, arguments, _ := strings.Cut(text, " ")
		if results > 0 {
			if word == "call" {
				results--
			}
			continue
		}
		switch word {
		case "think":
			add("<|channel|>analysis", text, end)
		case "note":
			add("<|channel|>commentary", text, end)
		case "loop":
			text = strings.Repeat(text+" ", endless)
			if i+1 < len(lines) && lines[i+1][1] == "say" {
				add("<|channel|>analysis", text, end)
			} else {
				add("<|channel|>final", text, "<|return|>")
			}
		case "fail":
			add("<|channel|>final", "<fails>", "")
		case "call":
			if header := recipient(name, tools); header != "" {
				add(header, arguments, "<|call|>")
				return strings.Join(messages, start), slow
			}
		case "say":
			add("<|channel|>final", text, "<|return|>")
			return strings.Join(messages, start), slow
		}
	}
	if len(messages) == 0 || strings.HasSuffix(messages[len(messages)-1], end) {
		add("<|channel|>final", "The script is over.", "<|return|>")
	}
	return strings.Join(messages, start), slow
}

// recipient is the header of a call, "" if the function is not offered.
func recipient(name string, tools []function) string {
	switch {
	case name == "python":
		return "<|channel|>analysis to=python code"
	case strings.HasPrefix(name, "browser."):
		return "<|channel|>analysis to=" + name + " code"
	case name == "*" && len(tools) > 0:
		name = tools[0].name
	}
	for _, t := range tools {
		if t.name == name && t.text {
			return "<|channel|>commentary to=functions." + name
		}
		if t.name == name {
			return "<|channel|>commentary to=functions." + name + " <|constrain|>json"
		}
	}
	return ""
}
