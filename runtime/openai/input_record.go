// The items of a request's input as they are kept: for input_items and for conversations.

package openai

import (
	"encoding/json"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// recordInput is the input as a list of items with ids; a string is a user's message. References
// are followed.
func recordInput(o *object, in *inputReader) (items []json.RawMessage) {
	switch v := o.get("input"); v.Kind() {
	case jsondoc.String:
		item, _ := marshal(map[string]any{"type": "message", "role": "user", "content": v.text()})
		items = append(items, item)
	case jsondoc.Array:
		for _, it := range v.messages() {
			raw := it.Raw
			if io := it.object(); io.text("type") == "item_reference" {
				if raw, _ = in.item(io.text("id")); raw == nil {
					continue
				}
			}
			items = append(items, raw)
		}
	}
	for i, raw := range items {
		items[i] = recordedItem(raw)
	}
	return items
}

// recordedItem gives an item what its client may leave out: an id, a type, a status, and parts if
// the content is one text.
func recordedItem(raw json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return raw
	}
	text := func(name string) (s string) {
		_ = json.Unmarshal(m[name], &s) // "" if it is something else
		return s
	}
	set := func(name string, v any) {
		if text(name) == "" {
			m[name], _ = marshal(v)
		}
	}
	set("type", "message")
	prefix := map[string]string{"message": "msg_", "function_call": "fc_",
		"function_call_output": "fco_", "reasoning": "rs_"}[text("type")]
	if prefix == "" {
		prefix = "item_"
	}
	set("id", newID(prefix))
	switch text("type") {
	case "function_call", "function_call_output":
		set("status", "completed")
	case "message":
		set("status", "completed")
		var content string
		if json.Unmarshal(m["content"], &content) == nil {
			part := contentPart{Type: "input_text", Text: content}
			if text("role") == "assistant" {
				part = outputText(content, nil)
			}
			m["content"], _ = marshal([]contentPart{part})
		}
	}
	if b, err := marshal(m); err == nil {
		return b
	}
	return raw
}

// compactedText is the text of a compaction item, "" if another server made it; whole: it stands
// for everything before it.
func compactedText(o *object) (text string, whole bool) {
	sealed := o.text("encrypted_content")
	body, whole := strings.CutPrefix(sealed, wholeSeal)
	if whole {
		sealed = sealVersion + body
	}
	return strings.TrimSpace(unseal(sealed)), whole
}
