// GET /docs: the API reference, generated from the table of operations, and from the texts in
// routes.json and fields.txt.
//
// What must stay true: each route has a sentence, a request that can be pasted, and an answer of
// the route's shape; each field has its type, range, default and meaning. docs_test.go sends the
// requests, and compares the answers and the defaults with the port's behaviour.

package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

// example is a route's entry in routes.json.
type example struct {
	Summary string   `json:"summary"`
	List    bool     `json:"list,omitempty"`  // of records: it has listQuery and listMembers
	Query   []string `json:"query,omitempty"` // in the form of fieldSchema, as is Body
	Body    []string `json:"body,omitempty"`
	Members string   `json:"members,omitempty"` // of every answer, separated by blanks
	Stream  string   `json:"stream,omitempty"`  // the type of a streamed answer

	About  string          `json:"about"`
	Path   string          `json:"path,omitempty"` // with an id for each variable
	Send   json.RawMessage `json:"send,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

type reference struct {
	page     *template.Template
	examples map[string]example
	fields   map[string][2]string // default and meaning, by name, or by name@route
}

var docs = sync.OnceValue(func() reference {
	r := reference{template.Must(template.ParseFS(pageFiles, "page/docs.html")),
		map[string]example{}, map[string][2]string{}}
	_ = json.Unmarshal([]byte(pageFile("routes.json")), &r.examples)
	for line := range strings.Lines(pageFile("fields.txt")) {
		if f := strings.SplitN(strings.TrimSpace(line), " | ", 3); len(f) == 3 {
			r.fields[f[0]] = [2]string{f[1], f[2]}
		}
	}
	return r
})

// docField is a row of the page's table.
type docField struct {
	parameter
	Kind, Range, Default, Meaning, entry string // of: its name in fields.txt
}

var kinds = strings.NewReplacer("text-or-strings", "string or list of strings", "strings",
	"list of strings", "integers", "list of integers", "objects", "list of objects", "effort",
	"none, minimal, low, medium, high, xhigh or max", "|", " or ")

func (r reference) rowsOf(path string, lines []string) (all []docField) {
	for _, line := range lines {
		p := parse(line)
		row, words := docField{parameter: p}, strings.Fields(p.Type)
		row.Kind = kinds.Replace(words[0])
		if row.Range = strings.Join(words[1:], " to "); len(words) == 2 {
			row.Range += " or more"
		}
		for name := range r.fields {
			field, route, _ := strings.Cut(name, "@")
			if field == p.Name && strings.HasPrefix(path, route) && len(name) > len(row.entry) {
				row.entry = name
			}
		}
		row.Default, row.Meaning = r.fields[row.entry][0], r.fields[row.entry][1]
		all = append(all, row)
	}
	return all
}

func (p *port) showDocs(e *answer.Exchange, request *http.Request) (any, *fields.Fault) {
	type row struct {
		example
		Method, Address, Path, Stream, Example string
		Body, Query                            []docField
		Keyed                                  bool // a request needs a key
	}
	r, rows := docs(), []row(nil)
	for _, o := range p.documented() {
		var answerText bytes.Buffer
		_ = json.Indent(&answerText, o.Answer, "", "  ") // a test reads the page
		method, path, _ := strings.Cut(o.route, " ")
		rows = append(rows, row{o.example, method, answer.URL(request, cmp.Or(o.Path, path)),
			path, o.Stream, answerText.String(), r.rowsOf(path, o.Body), r.rowsOf(path, o.Query),
			p.APIKey != "" || p.Keys.NeedsKey()})
	}
	var page bytes.Buffer
	if err := r.page.Execute(&page, rows); err != nil {
		return nil, fields.Failure(http.StatusInternalServerError, fields.KindServer, err.Error())
	}
	writeHTML(e, page.Bytes(), policyOf(page.Bytes()))
	return nil, nil
}
