// Tools of makers' own types that the client runs: a shell, patches, an editor, memory, a search
// among tools. The model calls them as functions.
//
// What must stay true: the grammar allows only calls that the client can run; the text of a patch
// becomes its operation and back without a change, or the prefix cache would miss it.

package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// ApplyPatch is the type of a tool whose call is text, as the model was trained with it.
const ApplyPatch = "apply_patch"

const patchForm = `
start: "*** Begin Patch\n" operation "*** End Patch" "\n"?
operation: create | update | "*** Delete File: " line
create: "*** Add File: " line ("+" text)+
update: "*** Update File: " line (place? change+)+ "*** End of File\n"?
place: "@@\n" | "@@ " line
change: /[-+ ]/ text
line: /[^\n]+/ "\n"
text: /[^\n]*/ "\n"
`

var patchGrammar = sync.OnceValues(func() (*grammar.Grammar, error) {
	return grammar.Rules(patchForm)
})

func patchTool(*fields.Object, string) Function {
	f := disguised(ApplyPatch, "Changes one file by a patch: creates, updates or deletes it. The "+
		"input is the bare patch, no JSON. It has this form (lark):"+patchForm, `{"type":"string"}`)
	f.custom = true
	f.input, _ = patchGrammar() // a constant
	return f
}

// disguised is a function for a tool of the client's.
func disguised(name, about, parameters string) Function {
	return Function{item: name + "_call", functionTool: functionTool{Type: "function", Name: name,
		Description: &about, Parameters: json.RawMessage(parameters)}}
}

func shellTool(t *fields.Object, typ string) Function {
	if kind := t.Object("environment").Text("type"); kind != "" && kind != "local" {
		t.Get("environment").Unsupported("a shell in the environment "+fields.Brief(kind),
			`send {"type": "local"} and run the commands, or offer code_interpreter`)
	}
	return disguised(typ, "Runs shell commands on the user's machine, each on its own.",
		`{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},`+
			`"minItems":1},"timeout_ms":{"type":"integer","minimum":1},"max_output_length":`+
			`{"type":"integer","minimum":1,"description":"Most characters of the output."}},`+
			`"required":["commands"],"additionalProperties":false}`)
}

func localShellTool(_ *fields.Object, typ string) Function {
	return disguised(typ, "Runs a program on the user's machine.",
		`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},`+
			`"minItems":1,"description":"Its name and arguments, such as [\"bash\", \"-lc\", `+
			`\"ls\"]."},"working_directory":{"type":"string"},"timeout_ms":{"type":"integer",`+
			`"minimum":1}},"required":["command"],"additionalProperties":false}`)
}

const toolSearch = "tool_search"

// searchTool is the client's search among its tools.
func searchTool(t *fields.Object, typ string) Function {
	if t.Text("execution") != "client" {
		return allDeferred(t, typ)
	}
	about := cmp.Or(t.Text("description"), "Finds tools for a task. They can be called afterwards.")
	f := disguised(typ, about, `{"type":"object","properties":{"query":{"type":"string"}},`+
		`"required":["query"],"additionalProperties":false}`)
	if t.Get("parameters").Kind() == jsondoc.Object {
		f.readParameters(t, "parameters")
	}
	return f
}

// bashTool is Anthropic's, as are the next two. Their calls are those of functions.
func bashTool(t *fields.Object, _ string) Function {
	return named(t, disguised("bash", "Runs a command in a bash session that lasts.",
		`{"type":"object","properties":{"command":{"type":"string"},"restart":{"type":"boolean",`+
			`"description":"Begins a new session."}},"anyOf":[{"required":["command"]},`+
			`{"required":["restart"]}],"additionalProperties":false}`))
}

func editorTool(t *fields.Object, typ string) Function {
	inserted := "insert_text"
	if typ < "text_editor_20250429" {
		inserted = "new_str"
	}
	commands := []string{"view path view_range?", "create path file_text",
		"str_replace path old_str new_str?", "insert path insert_line " + inserted}
	if inserted == "new_str" {
		commands = append(commands, "undo_edit path")
	}
	return named(t, commandTool("str_replace_based_edit_tool", "Shows and changes files.",
		commands))
}

func memoryTool(t *fields.Object, _ string) Function {
	return named(t, commandTool("memory", "Files under /memories that last for later "+
		"conversations. Look there before you begin, and write down what is worth it.",
		[]string{"view path view_range?", "create path file_text",
			"str_replace path old_str new_str", "insert path insert_line insert_text",
			"delete path", "rename old_path new_path"}))
}

// named is a function under the client's name for the tool.
func named(t *fields.Object, f Function) Function {
	if f.item = ""; t.Has("name") {
		f.Name = t.Text("name")
		f.checkName(t)
	}
	return f
}

// memberSchemas are those of the members of commands that are no strings.
var memberSchemas = map[string]string{
	"view_range": `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2,` +
		`"description":"First and last line; -1 is the end."}`,
	"insert_line": `{"type":"integer","minimum":0,"description":"The line after which to insert."}`,
}

// commandTool is a function whose argument command tells which others it has; one with ? is
// optional.
func commandTool(name, about string, commands []string) Function {
	var all, variants []string
	var members []string
	for _, line := range commands {
		words := strings.Fields(line)
		needed := []string{}
		for _, member := range words[1:] {
			member, optional := strings.CutSuffix(member, "?")
			if !optional {
				needed = append(needed, member)
			}
			if slices.Contains(members, member) {
				continue
			}
			members = append(members, member)
			all = append(all, fmt.Sprintf("%q:%s", member,
				cmp.Or(memberSchemas[member], `{"type":"string"}`)))
		}
		required, _ := answer.Marshal(needed) // strings cannot fail
		variants = append(variants, fmt.Sprintf(
			`{"properties":{"command":{"enum":[%q]}},"required":%s}`, words[0], required))
	}
	var names []string
	for _, line := range commands {
		word, _, _ := strings.Cut(line, " ")
		names = append(names, fmt.Sprintf("%q", word))
	}
	return disguised(name, about, fmt.Sprintf(`{"type":"object","properties":{"command":`+
		`{"type":"string","enum":[%s]},%s},"required":["command"],"anyOf":[%s],`+
		`"additionalProperties":false}`, strings.Join(names, ","), strings.Join(all, ","),
		strings.Join(variants, ",")))
}

// Operation is what a patch does to one file.
type Operation struct {
	Type string  `json:"type"` // create_file, update_file or delete_file
	Path string  `json:"path"`
	Diff *string `json:"diff,omitempty"`
}

const patchBegin, patchEnd = "*** Begin Patch\n", "*** End Patch"

// patchHeads are the lines of a patch that name a file.
var patchHeads = map[string]string{"create_file": "*** Add File: ",
	"update_file": "*** Update File: ", "delete_file": "*** Delete File: "}

// ReadPatch is the operation of a patch that follows the grammar.
func ReadPatch(patch string) (o Operation) {
	body, _ := strings.CutPrefix(patch, patchBegin)
	body, _ = strings.CutSuffix(strings.TrimSuffix(body, "\n"), patchEnd)
	head, diff, _ := strings.Cut(body, "\n")
	for kind, start := range patchHeads {
		if path, is := strings.CutPrefix(head, start); is {
			o = Operation{Type: kind, Path: path}
		}
	}
	if o.Type != "delete_file" {
		o.Diff = new(diff)
	}
	return o
}

func (o Operation) Patch() string {
	diff := ""
	if o.Diff != nil && *o.Diff != "" {
		diff = strings.TrimSuffix(*o.Diff, "\n") + "\n"
	}
	return patchBegin + patchHeads[o.Type] + o.Path + "\n" + diff + patchEnd
}

// dropDeferred drops the functions that only a search may offer, except those that were found.
func (offer *Offer) dropDeferred(isFound func(name string) bool) {
	if offer.findsAll {
		for i := range offer.Functions {
			if f := &offer.Functions[i]; f.deferred && f.space == "" && offer.api == Responses {
				f.space, f.localName = f.Name, f.Name // as OpenAI calls one that it has found
			}
		}
		return
	}
	offer.Functions = slices.DeleteFunc(offer.Functions, func(f Function) bool {
		return f.deferred && !isFound(f.Name)
	})
}

// allDeferred is a search by the server: instead of searching it offers all.
func allDeferred(*fields.Object, string) Function { return Function{} }
