// Repair of servers' results so that the SDK can decode them: the list of tools, an answer's
// blocks, and the server's description of itself.
//
// What must stay true: a part that violates the protocol affects no other part and is shown to the
// model as text if it can be; no content is lost.

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// object is JSON whose members keep their text.
type object = map[string]json.RawMessage

// repair returns a result with only parts that follow the protocol.
func repair(text json.RawMessage) json.RawMessage {
	var r object
	if json.Unmarshal(text, &r) != nil || r == nil {
		r = object{}
		if len(text) > 0 && string(text) != "null" { // a bare value is an answer
			r["content"] = encode([]json.RawMessage{block(text)})
		}
	}
	for name, kind := range map[string]any{"_meta": &object{}, "nextCursor": new(string),
		"isError": new(bool), "protocolVersion": new(string)} {
		if r[name] != nil && json.Unmarshal(r[name], kind) != nil {
			delete(r, name)
		}
	}
	if r["tools"] != nil {
		r["tools"] = encode(toolsIn(r["tools"]))
	}
	if r["content"] != nil || r["structuredContent"] != nil {
		r["content"] = encode(blocks(r["content"], r["structuredContent"]))
		if json.Unmarshal(encode(r), new(sdk.CallToolResult)) != nil {
			r = object{"content": r["content"], "isError": r["isError"]}
		}
		delete(r, "structuredContent") // blocks has added it as text, unless it repeats the others
	}
	if r["protocolVersion"] != nil && json.Unmarshal(encode(r), new(sdk.InitializeResult)) != nil {
		server := object{"protocolVersion": r["protocolVersion"],
			"capabilities": json.RawMessage(`{"tools":{"listChanged":true}}`)}
		if json.Unmarshal(r["serverInfo"], new(sdk.Implementation)) == nil {
			server["serverInfo"] = r["serverInfo"]
		}
		r = server
	}
	return encode(r)
}

func encode(v any) json.RawMessage {
	text, _ := json.Marshal(v) // every caller passes decoded JSON
	return text
}

// toolsIn returns the tools of a list that have a name, with the members that the protocol allows.
func toolsIn(text json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(text, &list) // anything else is a list without tools
	tools := []json.RawMessage{}
	for _, one := range list {
		var named struct{ Name string }
		var all object
		if json.Unmarshal(one, &named) != nil || named.Name == "" ||
			json.Unmarshal(one, &all) != nil {
			continue
		}
		if json.Unmarshal(one, new(sdk.Tool)) != nil {
			minimal := object{"name": all["name"], "inputSchema": all["inputSchema"]}
			for _, name := range []string{"title", "description"} {
				if json.Unmarshal(all[name], new(string)) == nil {
					minimal[name] = all[name]
				}
			}
			one = encode(minimal)
		}
		tools = append(tools, one)
	}
	return tools
}

// blocks returns the blocks of an answer, and one for structured content unless they repeat it.
func blocks(content, structured json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil && content != nil {
		list = []json.RawMessage{content} // a block outside a list
	}
	valid := []json.RawMessage{}
	var texts []string
	for _, one := range list {
		one = block(one)
		valid = append(valid, one)
		var text struct{ Text string }
		if json.Unmarshal(one, &text) == nil {
			texts = append(texts, text.Text)
		}
	}
	if structured != nil && string(structured) != "null" && !repeats(structured, texts) {
		var plain bytes.Buffer
		_ = json.Compact(&plain, structured) // it was JSON
		valid = append(valid, textBlock(plain.String()))
	}
	return valid
}

func textBlock(text string) json.RawMessage {
	return encode(map[string]string{"type": "text", "text": text})
}

const maxInvalidBlock = 2000 // bytes shown of a block that violates the protocol

// block returns a block unchanged, or a text block that shows it.
func block(one json.RawMessage) json.RawMessage {
	if json.Unmarshal(encode(map[string]any{"content": []json.RawMessage{one}}),
		new(sdk.CallToolResult)) == nil {
		return one
	}
	var text string
	if json.Unmarshal(one, &text) == nil {
		return textBlock(text)
	}
	var parts struct{ Type, Text any }
	_ = json.Unmarshal(one, &parts) // it may be no object
	switch text, plain := parts.Text.(string); {
	case plain && (parts.Type == nil || parts.Type == "text"):
		return textBlock(text)
	case len(one) > maxInvalidBlock:
		return textBlock(fmt.Sprintf("[content of type %v was skipped: %d bytes]", parts.Type,
			len(one)))
	}
	return textBlock(string(one))
}

// repeats tells whether an answer's text is its structured form, or the only member of it.
func repeats(structured json.RawMessage, texts []string) bool {
	text := []byte(strings.Join(texts, "\n"))
	items := []json.RawMessage{} // a block for each, as Python's servers write lists
	for _, one := range texts {
		item := json.RawMessage(one)
		if !json.Valid(item) {
			item = encode(one)
		}
		items = append(items, item)
	}
	values := []json.RawMessage{structured}
	var members object
	if json.Unmarshal(structured, &members) == nil && len(members) == 1 {
		values = slices.AppendSeq(values, maps.Values(members))
	}
	return slices.ContainsFunc(values, func(value json.RawMessage) bool {
		return sameJSON(value, text) || sameJSON(value, encode(string(text))) ||
			sameJSON(value, encode(items))
	})
}

// sameJSON tells whether two texts are the same JSON; numbers are compared as written.
func sameJSON(a, b []byte) bool {
	var both [2]any
	for i, text := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		if d.UseNumber(); d.Decode(&both[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(both[0], both[1])
}
