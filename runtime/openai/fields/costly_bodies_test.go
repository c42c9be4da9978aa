// The bodies of TestBodiesCostLittle.

package fields_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
)

// costlyBody is made of many pieces: as many as there is room for.
type costlyBody struct {
	name, path, begin, end string
	piece                  func(i int) string
}

func (c costlyBody) text(size int) []byte {
	var b bytes.Buffer
	b.Grow(size)
	b.WriteString(c.begin)
	for i := 0; ; i++ {
		piece := c.piece(i)
		if b.Len()+len(piece)+len(c.end) >= size {
			break
		}
		if i > 0 && c.end[0] != '"' { // not inside of a text
			b.WriteByte(',')
		}
		b.WriteString(piece)
	}
	b.WriteString(c.end)
	return b.Bytes()
}

// numbered are pieces with their number in the place of each #.
func numbered(piece string) func(int) string {
	if !strings.Contains(piece, "#") {
		return func(int) string { return piece }
	}
	return func(i int) string { return strings.ReplaceAll(piece, "#", fmt.Sprint(i)) }
}

// padded are pieces of the longest body of which there are count.
func padded(count int, piece string) func(int) string {
	n := max(0, answer.StandardBody/count-len(piece))
	pad := strings.Repeat(" ", n)
	if strings.Contains(piece, `~"`) { // in a text
		pad = strings.Repeat("word and ", n/9+1)[:n]
	}
	return numbered(strings.Replace(piece, "~", pad, 1))
}

// phases are count pieces of a first kind, then as many of a second, and so on.
func phases(count int, first, second string) func(int) string {
	one, other := numbered(first), numbered(second)
	return func(i int) string {
		if i/count%2 == 0 {
			return one(i % count)
		}
		return other(i % count)
	}
}

func costlyBodies() []costlyBody {
	var all []costlyBody
	add := func(name, path, begin, end string, piece func(int) string) {
		all = append(all, costlyBody{path + ", " + name, path, begin, end, piece})
	}
	const chat, responses, claude, ollama = "/v1/chat/completions", "/v1/responses",
		"/v1/messages", "/api/chat"
	base := `{"model":"demo","max_tokens":9,"messages":[` + porttest.Hello + `],"input":"hello",`

	// conversations, of many messages and of as many as are possible
	const call = `{"id":"c#","type":"function","function":{"name":"f","arguments":"~"}}`
	calls := `{"role":"assistant","tool_calls":[` + call + `]}`
	result := `{"role":"tool","tool_call_id":"c#","content":"~"}`
	text := `{"role":"user","content":"~"}`
	parts := strings.Repeat(`{"type":"text","text":"word "},`, 7) + `{"text":"~"}`
	talks := []struct{ route, name, pieces string }{
		{chat, "messages", text}, {chat, "instructions", `{"role":"system","content":"~"}`},
		{chat, "numbers", `0~`}, {chat, "empty objects", `{~}`},
		{chat, "members", `{"role":"user","content":"hi"` + strings.Repeat(`,"a#":0,"b#":0`, 7) +
			`~}`},
		{chat, "parts", `{"role":"user","content":[` + parts + `]}`},
		{chat, "parts of answers", `{"role":"assistant","content":[` + parts + `]}`},
		{chat, "calls and results", calls + `,` + result},
		{claude, "messages", text},
		{claude, "blocks", `{"role":"user","content":[{"type":"text","text":"~"}]}`},
		{claude, "calls and results", `{"role":"assistant","content":[{"type":"tool_use",` +
			`"id":"c#","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result",` +
			`"tool_use_id":"c#","content":"~"}]}`},
		{ollama, "messages", text},
		{ollama, "calls and results", `{"role":"assistant","tool_calls":[{"function":{"name":` +
			`"f#","arguments":{}}}]},{"role":"tool","content":"~"}`},
		{responses, "messages", text},
		{responses, "parts", `{"role":"user","content":[` + parts + `]}`},
		{responses, "answers and thoughts", `{"role":"assistant","content":"hi"},` +
			`{"type":"reasoning","content":[{"text":"~"}]}`},
		{responses, "calls and results", `{"type":"function_call","call_id":"c#","name":"f",` +
			`"arguments":""},{"type":"function_call_output","call_id":"c#","output":"~"}`},
		{responses, "references", `{"type":"item_reference","id":"msg_#~"}`},
		{responses, "requests", `{"type":"mcp_approval_request","id":"r#","name":"f",` +
			`"arguments":"~"}`},
		{responses, "other items", `{"type":"x#~"}`},
		{responses, "code", `{"type":"code_interpreter_call","code":"~","outputs":[]}`},
	}
	for _, c := range talks {
		field, few := "messages", 32_000
		if c.route == responses {
			field = "input"
		}
		if strings.Contains(c.name, " and ") { // two messages a piece
			few /= 2
		}
		begin := `{"model":"demo","max_tokens":9,"` + field + `":[`
		add(c.name, c.route, begin, `]}`, numbered(strings.Replace(c.pieces, "~", "", 1)))
		add("few "+c.name, c.route, begin, `]}`, padded(few, c.pieces))
	}
	for _, c := range []struct{ route, field string }{{"/v1/conversations", "items"},
		{"/v1/responses/input_tokens", "input"}, {"/v1/responses/compact", "input"},
		{"/v1/messages/count_tokens", "messages"}, {"/tokenize", "messages"}} {
		add("messages", c.route, `{"`+c.field+`":[`, `]}`, numbered(strings.Replace(text, "~", "", 1)))
		add("few messages", c.route, `{"`+c.field+`":[`, `]}`, padded(32_000, text))
	}

	// results far from their calls
	short := strings.NewReplacer("~", "")
	add("calls, then results", chat, `{"messages":[`, `]}`, phases(8000, short.Replace(calls),
		short.Replace(result)))
	add("calls, then users", chat, `{"messages":[`, `]}`, phases(8000, short.Replace(calls),
		short.Replace(text)))
	add("calls, then results", responses, `{"input":[`, `]}`, phases(8000,
		`{"type":"function_call","call_id":"c#","name":"f","arguments":""}`,
		`{"type":"function_call_output","call_id":"c#","output":"x"}`))
	add("requests, then answers", responses, `{"input":[`, `]}`, phases(8000,
		`{"type":"mcp_approval_request","id":"r#","name":"f","arguments":"{}"}`,
		`{"type":"mcp_approval_response","approval_request_id":"r#","approve":false}`))
	add("calls, then results", ollama, `{"model":"demo","messages":[`, `]}`, phases(8000,
		`{"role":"assistant","tool_calls":[{"function":{"name":"f#","arguments":{}}}]}`,
		`{"role":"tool","tool_name":"f#","content":"x"}`))

	// one message of many parts, calls or blocks
	for _, c := range []struct{ route, name, begin, end, piece string }{
		{chat, "parts of a message", `{"role":"user","content":[`, `]}`, `{"text":"~"}`},
		{chat, "texts of a message", `{"role":"user","content":[`, `]}`, `"~"`},
		{chat, "parts of an answer", `{"role":"assistant","content":[`, `]}`, `{"text":"~"}`},
		{chat, "wrong parts", `{"role":"user","content":[`, `]}`, `0~`},
		{chat, "images of a result", strings.ReplaceAll(short.Replace(calls), "#", "0") +
			`,{"role":"tool","tool_call_id":"c0","content":[`, `]}`, `{"type":"image"~}`},
		{chat, "calls of a message", `{"role":"assistant","tool_calls":[`, `]}`, call},
		{claude, "blocks of a message", `{"role":"user","content":[`, `]}`,
			`{"type":"text","text":"~"}`},
		{claude, "blocks of an answer", `{"role":"assistant","content":[`, `]}`,
			`{"type":"text","text":"~"}`},
		{claude, "calls of a message", `{"role":"assistant","content":[`, `]}`,
			`{"type":"tool_use","id":"c#","name":"f","input":{}~}`},
		{claude, "results of a message", `{"role":"user","content":[`, `]}`,
			`{"type":"tool_result","tool_use_id":"c#","content":"~"}`},
		{ollama, "calls of a message", `{"role":"assistant","tool_calls":[`, `]}`,
			`{"function":{"name":"f","arguments":{}}~}`},
		{ollama, "images of a message", `{"role":"user","images":[`, `]}`, `"~"`},
	} {
		begin := `{"model":"demo","max_tokens":9,"messages":[` + c.begin
		add(c.name, c.route, begin, c.end+`]}`, numbered(short.Replace(c.piece)))
		for _, few := range []int{32_000, 130_000} {
			add(fmt.Sprint(few, " ", c.name), c.route, begin, c.end+`]}`, padded(few, c.piece))
		}
	}

	// other lists and objects
	for _, c := range []struct{ route, name, field, piece string }{
		{chat, "tools", `"tools":[`, `{"type":"function","function":{"name":"f#"}}`},
		{chat, "functions", `"functions":[`, `{"name":"f#"}`},
		{chat, "other tools", `"tools":[`, `{"type":"x#"}`},
		{chat, "stop strings", `"stop":[`, `"#~"`},
		{chat, "stop tokens", `"stop_token_ids":[`, `1~`},
		{chat, "bad words", `"bad_words":[`, `"a"~`},
		{chat, "modalities", `"modalities":[`, `"text"~`},
		{chat, "unknown list", `"x":[`, `1`},
		{chat, "brackets", `"x":[`, `[[[[[[[]]]]]]]`},
		{chat, "unknown fields", ``, `"a#~":0`},
		{chat, "one field again", ``, `"a":0`},
		{chat, "logit_bias", `"logit_bias":{`, `"#":1~`},
		{chat, "metadata", `"metadata":{`, `"#~":""`},
		{chat, "prediction", `"prediction":{"type":"content","content":[`,
			`{"type":"text","text":"a~"}`},
		{chat, "choices", `"guided_choice":[`, `"#~"`},
		{chat, "enum", `"response_format":{"type":"json_schema","json_schema":{"name":"x",` +
			`"schema":{"enum":[`, `"#"`},
		{chat, "properties", `"response_format":{"type":"json_schema","json_schema":{"name":"x",` +
			`"schema":{"properties":{`, `"#":{}`},
		{responses, "tools", `"tools":[`, `{"type":"function","name":"f#"}`},
		{responses, "custom tools", `"tools":[`, `{"type":"custom","name":"f#"}`},
		{responses, "include", `"include":[`, `"reasoning.encrypted_content"`},
		{claude, "tools", `"tools":[`, `{"name":"f#","input_schema":{}}`},
		{claude, "system", `"system":[`, `{"type":"text","text":"a~"}`},
		{ollama, "tools", `"tools":[`, `{"type":"function","function":{"name":"f#"}}`},
		{ollama, "options", `"options":{`, `"#~":1`},
		{"/v1/completions", "ids", `"prompt":[`, `1`},
		{"/v1/completions", "texts", `"prompt":[`, `"a"`},
		{"/v1/completions", "lists", `"prompt":[`, `[1]`},
		{"/v1/completions", "allowed ids", `"prompt":"a","allowed_token_ids":[`, `1~`},
		{"/v1/completions", "allowed nulls", `"prompt":"a","allowed_token_ids":[`, `null`},
		{"/detokenize", "ids", `"tokens":[`, `72056~`},
	} {
		end := "}"
		for _, b := range c.field { // what it opens is closed
			switch b {
			case '[':
				end = "]" + end
			case '{':
				end = "}" + end
			}
		}
		add(c.name, c.route, base+c.field, end, numbered(short.Replace(c.piece)))
		if strings.Contains(c.piece, "~") {
			add("few "+c.name, c.route, base+c.field, end, padded(130_000, c.piece))
		}
	}
	add("most ids of long texts", "/detokenize", `{"tokens":[`+strings.Repeat("72056,",
		fields.MostItems-1),
		"1]}", func(int) string { return strings.Repeat(" ", answer.StandardBody) })
	tool := strings.Repeat(`"property#":{"type":"string"},`, 125) + `"z":{}`
	add("large tools", chat, base+`"tools":[`, `]}`, numbered(
		`{"type":"function","function":{"name":"f#","parameters":{"type":"object",`+
			`"properties":{`+tool+`}}}}`))
	add("large tools", claude, base+`"tools":[`, `]}`, numbered(
		`{"name":"f#","input_schema":{"type":"object","properties":{`+tool+`}}}`))
	words := strings.Repeat("word ", 810)
	add("described tools", responses, base+`"tools":[`, `]}`, numbered(
		`{"type":"function","name":"f#","description":"`+words+`"}`))
	add("described custom tools", responses, base+`"tools":[`, `]}`, numbered(
		`{"type":"custom","name":"f#","description":"`+words+`"}`))

	// one long text
	for name, piece := range map[string]string{"words": "word and another ", "escapes": `\u0061\n`,
		"names of special tokens": "<|end|>", "signs": "?!<~", "letters": "abcdefgh",
		"one letter": "a", "spaces": " ", "runs": strings.Repeat(" ", 460) + "1",
		"wide letters": "漢字"} {
		one := numbered(strings.Repeat(piece, max(1, 1000/len(piece))))
		for _, begin := range []string{chat + `{"messages":[{"role":"user","content":"`,
			"/v1/completions" + `{"prompt":"`,
			"/tokenize" + `{"return_token_strs":true,"prompt":"`} {
			path, begin, _ := strings.Cut(begin, "{")
			end := `"}`
			if path == chat {
				end = `"}]}`
			}
			add(name, path, "{"+begin, end, one)
		}
	}
	add("mixed white space", chat, `{"messages":[{"role":"user","content":"`, `"}]}`,
		func(i int) string { return strings.Repeat(" ", 300+i%331) + `\n` })
	add("cut letters", chat, `{"messages":[{"role":"user","content":"`, `"}]}`,
		numbered(strings.Repeat("\xff\xc3", 500)))
	return all
}
