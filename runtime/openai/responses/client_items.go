// Items of tools that the client runs and that are no functions to it: shell_call,
// local_shell_call, apply_patch_call and tool_search_call.
//
// What must stay true: an item is added and done with its whole call, since a part of a command is
// another command; an item that comes back is the call as the model made it.

package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
)

// clientItem is one of them; fields of other types are nil.
type clientItem struct {
	itemHead
	CallID    string           `json:"call_id"`
	Action    any              `json:"action,omitempty"`    // of both shells
	Operation *tools.Operation `json:"operation,omitempty"` // of apply_patch
	Execution string           `json:"execution,omitempty"` // of tool_search: client
	Arguments json.RawMessage  `json:"arguments,omitempty"`
	Status    string           `json:"status"`
	// of shell_call
	Environment map[string]string `json:"environment,omitempty"`
}

type shellAction struct {
	Commands  []string `json:"commands"`
	TimeoutMS *int     `json:"timeout_ms"`
	MaxOutput *int     `json:"max_output_length"`
}

type localShellAction struct {
	Type      string            `json:"type"` // exec
	Command   []string          `json:"command"`
	Env       map[string]string `json:"env"`
	Folder    *string           `json:"working_directory,omitempty"`
	TimeoutMS *int              `json:"timeout_ms,omitempty"`
	User      *string           `json:"user,omitempty"`
}

// idPrefixes begin the ids of clientItems.
var idPrefixes = map[string]string{"shell_call": "sh_", "local_shell_call": "lsh_",
	"apply_patch_call": "apc_", "tool_search_call": "tsc_"}

// newClientItem is the item of a complete call; its arguments follow the tool's grammar.
func (c *composer) newClientItem(kind string, call session.CallStart,
	arguments string) *clientItem {
	item := &clientItem{itemHead: itemHead{c.repeatableID(idPrefixes[kind]), kind},
		CallID: call.ID, Status: "in_progress"}
	read := func(into any) any {
		_ = json.Unmarshal([]byte(arguments), into) // missing members stay empty
		return into
	}
	switch kind {
	case "shell_call":
		item.Action = read(&shellAction{Commands: []string{}})
		item.Environment = map[string]string{"type": "local"}
	case "local_shell_call":
		item.Action = read(&localShellAction{Type: "exec", Command: []string{},
			Env: map[string]string{}})
	case "apply_patch_call":
		item.Operation = new(tools.ReadPatch(arguments))
	default:
		item.Execution, item.Arguments = "client", tools.InputObject(arguments)
	}
	return item
}

// readClientCall adds an earlier call of one of these tools; false: its type is another one.
func readClientCall(conv *request.Conversation, o *fields.Object, kind string) bool {
	id := o.Text("call_id")
	switch kind {
	case "apply_patch_call":
		operation := o.Object("operation")
		if operation == nil {
			return false
		}
		p := tools.Operation{Type: operation.Text("type"), Path: operation.Text("path")}
		if operation.Has("diff") {
			p.Diff = new(operation.Text("diff"))
		}
		conv.Await(id, tools.ApplyPatch, p.Patch(), true)
	case "shell_call", "local_shell_call":
		// members that the model did not set are no part of its call
		sent := map[string]json.RawMessage{}
		action := o.Object("action")
		if action == nil {
			return false
		}
		for _, m := range action.Members() {
			if kind := (jsondoc.Field{Raw: m.Value}).Kind(); kind != jsondoc.Null &&
				m.Name != "type" && m.Name != "env" {
				sent[m.Name] = m.Value
			}
		}
		arguments, _ := answer.Marshal(sent) // of parsed values
		conv.Await(id, strings.TrimSuffix(kind, "_call"), string(arguments), false)
	default:
		return false
	}
	return true
}

// readClientResult adds the result of such a call; false: its type is another one.
func readClientResult(conv *request.Conversation, o *fields.Object, kind string) bool {
	id := cmp.Or(o.Text("call_id"), o.Text("id")) // local_shell_call_output has it in id
	if !conv.IsAwaited(id) {
		return false
	}
	text := ""
	switch kind {
	case "shell_call_output":
		v := o.Get("output")
		if v.Kind() != jsondoc.Array {
			text = request.Content(o, "output", true)
			break
		}
		for _, v := range v.List() {
			part := v.Object()
			text += part.Text("stdout") + part.Text("stderr")
			switch outcome := part.Object("outcome"); {
			case outcome.Text("type") == "timeout":
				text += "\n[timeout]\n"
			case outcome.Number("exit_code", -1<<31, 1<<32, 0) != 0: // Windows' are unsigned
				text += fmt.Sprintf("\n[exit code %s]\n", outcome.Get("exit_code").Raw)
			}
		}
	case "local_shell_call_output", "apply_patch_call_output":
		text = cmp.Or(request.Content(o, "output", true), o.Text("status"))
	default:
		return false
	}
	conv.Result(id, "", text)
	return true
}
