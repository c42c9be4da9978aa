// Tools of makers' own types that the client runs: a shell, patches, an editor, memory, a search
// among tools. The model calls them as functions, which offered.json has.
//
// What must stay true: the grammar allows only calls that the client can run; the text of a patch
// becomes its operation and back without a change, or the prefix cache would miss it.

package tools

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar"
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

func patchTool(t *fields.Object, typ string) Function {
	f := disguised(t, typ)
	f.Description = new(*f.Description + patchForm)
	f.custom = true
	f.input, _ = patchGrammar() // a constant
	return f
}

//go:embed offered.json
var offeredText []byte

// offeredTools are functions for tools of the client's, by type.
var offeredTools = sync.OnceValue(func() (all map[string]functionTool) {
	var b bytes.Buffer
	_ = json.Compact(&b, offeredText) // the model sees the parameters' text
	_ = json.Unmarshal(b.Bytes(), &all)
	return all // TestOfferedTools reads each
})

// disguised is the function for a tool of the client's.
func disguised(_ *fields.Object, typ string) Function {
	f := offeredTools()[withoutDate(typ)]
	return Function{item: f.Name + "_call", functionTool: f}
}

func shellTool(t *fields.Object, typ string) Function {
	if kind := t.Object("environment").Text("type"); kind != "" && kind != "local" {
		t.Get("environment").Unsupported("a shell in the environment "+fields.Brief(kind),
			`send {"type": "local"} and run the commands, or offer code_interpreter`)
	}
	return disguised(t, typ)
}

const toolSearch = "tool_search"

// searchTool is the client's search among its tools.
func searchTool(t *fields.Object, typ string) Function {
	if t.Text("execution") != "client" {
		return allDeferred(t, typ)
	}
	f := disguised(t, typ)
	f.Description = new(cmp.Or(t.Text("description"), *f.Description))
	if t.Get("parameters").Kind() == jsondoc.Object {
		f.readParameters(t, "parameters")
	}
	return f
}

func editorTool(t *fields.Object, typ string) Function {
	if typ < "text_editor_20250429" {
		typ = "text_editor with undo_edit"
	}
	return named(t, typ)
}

// named is a tool of Anthropic's, under the client's name for it. Its calls are those of functions.
func named(t *fields.Object, typ string) Function {
	f := disguised(t, typ)
	if f.item = ""; t.Has("name") {
		f.Name = t.Text("name")
		f.checkName(t)
	}
	return f
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
