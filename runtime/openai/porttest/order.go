// The order of events that clients rely on, checked in every stream of a test's server (by
// checked.go).

package porttest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// chunkFaults checks a stream of chat completions or completions: one id; the role in the first
// chunk of a choice of a chat and in no other; one end for each choice, and nothing after it; usage
// in a last chunk without choices if requested, null before, or from one chunk on in all; [DONE].
func chunkFaults(list []Event, schema string) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len(list) == 0 || list[len(list)-1].Data != "[DONE]" {
		return []string{"the stream does not end in [DONE]"}
	}
	list = list[:len(list)-1]
	open, failed, spent, continuous := map[float64]bool{}, false, false, false
	_, asked := list[0].Json["usage"]
	for i, e := range list {
		if failed || spent {
			add("chunk %d comes after the last one", i)
		}
		if e.Name != "" {
			add("chunk %d has the event line %q", i, e.Name)
		}
		if e.Json["error"] != nil {
			failed = true
			continue
		}
		choices, _ := e.Json["choices"].([]any)
		for _, c := range choices { // the document has no custom tools in streams, the SDKs do
			if delta, ok := At(c, "delta").(map[string]any); ok && At(delta, "tool_calls", 0,
				"custom") != nil {
				delete(delta, "tool_calls")
			}
		}
		if err := fits(Schemas()[schema], e.Json, schema); err != nil {
			add("%v", err)
		}
		if err := usageSums(e.Json["usage"]); err != nil {
			add("%v", err)
		}
		if e.Json["id"] != list[0].Json["id"] {
			add("the id changes")
		}
		if _, told := e.Json["usage"]; told != asked {
			add("chunk %d of a stream with usage %v has %v", i, asked, e.Json["usage"])
		}
		used := e.Json["usage"] != nil
		spent, continuous = used && len(choices) == 0, continuous || used && len(choices) > 0
		if ids := e.Json["prompt_token_ids"] != nil; !ids && !continuous &&
			used != (len(choices) == 0) || continuous && !used {
			add("chunk %d has %d choices and usage %v", i, len(choices), e.Json["usage"])
		}
		for _, c := range choices {
			n, _ := At(c, "index").(float64)
			running, seen := open[n]
			if seen && !running {
				add("choice %v goes on after its end", n)
			}
			if role := At(c, "delta", "role"); At(c, "delta") != nil && (role != nil) == seen {
				add("choice %v has the role %v, begun before: %v", n, role, seen)
			}
			open[n] = At(c, "finish_reason") == nil
		}
	}
	for n, unfinished := range open {
		if unfinished && !failed {
			add("choice %v has no end", n)
		}
	}
	if asked && !spent && !failed {
		add("usage was asked for and is not told")
	}
	return wrong
}

func messageStreamFaults(list []Event) (wrong []string) {
	open, next, ended := -1.0, 0.0, false
	for i, e := range list {
		kind, index := e.Json["type"], e.Json["index"]
		if e.Name != kind {
			wrong = append(wrong, fmt.Sprintf("event line %q, type %q", e.Name, kind))
		}
		if (i == 0) != (kind == "message_start") && kind != "error" {
			wrong = append(wrong, fmt.Sprintf("event %d is %v", i, kind))
		}
		if ended {
			wrong = append(wrong, fmt.Sprintf("%v comes after the end", kind))
		}
		switch kind {
		case "content_block_start":
			if open >= 0 || index != next {
				wrong = append(wrong, fmt.Sprintf("block %v begins while %v is open", index, open))
			}
			open = next
			next++
		case "content_block_delta", "content_block_stop":
			if index != open {
				wrong = append(wrong, fmt.Sprintf("%v of block %v, %v is open", kind, index, open))
			}
			if kind == "content_block_stop" {
				open = -1
			}
		case "message_stop":
			if ended = true; open >= 0 || i == 0 || list[i-1].Name != "message_delta" {
				wrong = append(wrong, "message_stop without what comes before it")
			}
		case "error":
			ended = true
		}
	}
	if !ended {
		wrong = append(wrong, "the stream has no end")
	}
	return wrong
}

// responseStreamFaults checks a stream of a response: everything if it begins with the response,
// else what is true from any event on.
func responseStreamFaults(list []Event) (wrong []string) {
	if len(list) == 0 {
		return nil
	}
	// a sign of life for Codex, which has no number
	list = slices.DeleteFunc(slices.Clone(list), func(e Event) bool { return e.Name == "keepalive" })
	for i, e := range list {
		kind, _ := e.Json["type"].(string)
		if e.Name != kind {
			wrong = append(wrong, fmt.Sprintf("event line %q, type %q", e.Name, kind))
		}
		name := eventSchemas[kind]
		if err := fits(Schemas()[name], e.Json, name); err != nil {
			wrong = append(wrong, kind+": "+err.Error())
		}
		first, _ := list[0].Json["sequence_number"].(float64)
		if number := e.Json["sequence_number"]; number != first+float64(i) {
			wrong = append(wrong, fmt.Sprintf("event %d after %v has number %v", i, first, number))
		}
		if err := usageSums(At(e.Json, "response", "usage")); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	switch last := list[len(list)-1].Name; last {
	case "response.completed", "response.incomplete", "response.failed":
	default:
		wrong = append(wrong, "the last event is "+last)
	}
	if list[0].Name == "response.created" {
		wrong = append(wrong, itemFaults(list)...)
	}
	return wrong
}

// openItem is an output item between added and done.
type openItem struct {
	id    any
	said  string // deltas since the part was added
	parts map[string]int
	part  string // the open part, with its index
}

// itemFaults checks the order within a full stream: created and in_progress are first; items follow
// one at a time, with the indexes 0, 1, ...; so do their parts; deltas are in between and add up to
// the text of done; the final response has the items as they were done.
func itemFaults(list []Event) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	began := list
	if len(list) > 1 && list[1].Name == "response.queued" {
		began = list[1:]
	}
	if len(began) < 3 || began[1].Name != "response.in_progress" ||
		list[0].Json["sequence_number"] != 0.0 {
		return []string{"the stream does not begin with created and in_progress"}
	}
	var open *openItem
	var done []any
	seen := 0
	for i, e := range list {
		kind := e.Name
		switch {
		case kind == "response.output_item.added":
			if open != nil || e.Json["output_index"] != float64(seen) {
				add("item %v is added while %v is open, after %d", e.Json["output_index"], open, seen)
			}
			open = &openItem{id: At(e.Json, "item", "id"), parts: map[string]int{}}
			seen++
		case At(e.Json, "response") != nil:
			if id := At(e.Json, "response", "id"); id != At(list[0].Json, "response", "id") {
				add("%s of the response %v", kind, id)
			}
			if i >= 3 && i < len(list)-1 && kind != "response.in_progress" { // a sign of life
				add("%s is event %d of %d", kind, i, len(list))
			}
		case open == nil || e.Json["output_index"] != float64(seen-1):
			add("%s of item %v, open is %v", kind, e.Json["output_index"], open)
		case kind == "response.output_item.done":
			if At(e.Json, "item", "id") != open.id || open.part != "" {
				add("%v is done while %v is open", e.Json["item"], open)
			}
			done, open = append(done, e.Json["item"]), nil
		default:
			wrong = append(wrong, open.faults(e)...)
		}
	}
	last := list[len(list)-1]
	output, _ := At(last.Json, "response", "output").([]any)
	if open != nil { // an incomplete call is never done, and not in the response
		id, _ := open.id.(string)
		end := len(output) - 1
		switch {
		case last.Name == "response.failed" && end >= 0 && At(output[end], "id") == id &&
			At(output[end], "status") == "incomplete": // its process ended first
			output = output[:end]
		case last.Name == "response.completed" ||
			!strings.HasPrefix(id, "fc_") && !strings.HasPrefix(id, "ctc_"):
			add("item %v was never done", open.id)
		}
	}
	if len(output) != len(done) {
		add("%d items in the response, %d in the stream", len(output), len(done))
		return wrong
	}
	for i := range output {
		if !reflect.DeepEqual(output[i], done[i]) {
			add("item %d was done as %v and is %v", i, done[i], output[i])
		}
	}
	return wrong
}

// faults checks an event within an item.
func (o *openItem) faults(e Event) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if e.Json["item_id"] != o.id {
		add("%s of %v while %v is open", e.Name, e.Json["item_id"], o.id)
	}
	part := ""
	for _, name := range []string{"content_index", "summary_index"} {
		if index := e.Json[name]; index != nil {
			part = fmt.Sprint(name, index)
			if strings.HasSuffix(e.Name, "part.added") {
				if o.part != "" || index != float64(o.parts[name]) {
					add("part %s is added while %q is open", part, o.part)
				}
				o.part, o.said = part, ""
				o.parts[name]++
			}
		}
	}
	if part != o.part {
		add("%s of part %q while %q is open", e.Name, part, o.part)
	}
	if strings.HasSuffix(e.Name, "part.done") {
		o.part = ""
	}
	delta, _ := e.Json["delta"].(string)
	o.said += delta
	for _, whole := range []string{"text", "arguments", "code", "input"} {
		if text, ok := e.Json[whole].(string); ok && text != o.said {
			add("%s says %q, its deltas %q", e.Name, text, o.said)
		}
	}
	if text, ok := At(e.Json, "part", "text").(string); ok && text != o.said {
		add("%s has %q, its deltas %q", e.Name, text, o.said)
	}
	return wrong
}

// ConformResponses fails the test unless the events are a full stream in order.
func ConformResponses(t *testing.T, list []Event) {
	t.Helper()
	if len(list) == 0 || list[0].Name != "response.created" {
		t.Fatal("not a whole stream")
	}
	for _, wrong := range responseStreamFaults(list) {
		t.Error(wrong)
	}
}
