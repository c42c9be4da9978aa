// What the tests outside of the package need of those inside.

package openai

import (
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/chat"
	"github.com/ossrun/ossrun/runtime/openai/completions"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/messages"
	"github.com/ossrun/ossrun/runtime/openai/ollama"
	"github.com/ossrun/ossrun/runtime/openai/responses"
)

// Parameter is a field of a body.
type Parameter = parameter

// Documented is what the document says of an operation.
type Documented struct {
	Route, Summary, Answer string
	Body, Query            []Parameter
}

// Document is what the document says.
func Document() (list []Documented) {
	for _, o := range newPort(Options{}).documented() {
		list = append(list, Documented{o.route, o.Summary, o.Members, parseAll(o.Body),
			parseAll(o.Query)})
	}
	return list
}

// Routes are the methods of each path; "": all.
func Routes() map[string][]string {
	all := map[string][]string{}
	for path, m := range newPort(Options{}).routes() {
		for method := range m {
			all[path] = append(all[path], method)
		}
	}
	return all
}

// Readers read the bodies of the routes that generate.
func Readers() map[string]answer.Reader {
	p := newPort(Options{})
	return map[string]answer.Reader{"POST /v1/chat/completions": p.chat.Read,
		"POST /v1/completions": completions.Read, "POST /v1/responses": p.responses.Read,
		"POST /v1/messages": p.messages.Read, "POST /api/chat": p.ollama.ReadChat,
		"POST /api/generate": p.ollama.ReadGenerate}
}

// Tables are their parameters.
func Tables() map[string][]fields.Parameter {
	return map[string][]fields.Parameter{"POST /v1/chat/completions": chat.Parameters(),
		"POST /v1/completions": completions.Parameters(),
		"POST /v1/responses":   responses.Parameters(),
		"POST /v1/messages":    messages.Parameters(), "POST /api/chat": ollama.ChatParameters(),
		"POST /api/generate": ollama.GenerateParameters()}
}

// Example is what routes.json says of a route.
type Example = example

// ReferenceField is a row of the page at /docs. Of is its name in fields.txt.
type ReferenceField struct{ Name, Of, Default, Meaning string }

// Reference are the rows of a route.
func Reference(route string) (list []ReferenceField) {
	for _, o := range newPort(Options{}).documented() {
		_, path, _ := strings.Cut(o.route, " ")
		for _, lines := range [][]string{o.Body, o.Query} {
			for _, f := range docs().rowsOf(path, lines) {
				if o.route == route {
					list = append(list, ReferenceField{f.Name, f.entry, f.Default, f.Meaning})
				}
			}
		}
	}
	return list
}

// ReferenceNames are those of fields.txt.
func ReferenceNames() map[string][2]string { return docs().fields }

// SetMaxSockets sets the bound of open WebSocket connections until restore is called.
func SetMaxSockets(n int64) (restore func()) {
	old := maxSockets
	maxSockets = n
	return func() { maxSockets = old }
}

func parseAll(lines []string) (all []parameter) {
	for _, line := range lines {
		all = append(all, parse(line))
	}
	return all
}
