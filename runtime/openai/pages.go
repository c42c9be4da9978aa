// GET /, /docs and /openapi.json: a chat page for the browser, and the table of operations as a
// page and as an OpenAPI document.
//
// What must stay true: a page fetches nothing from elsewhere and runs only its own script. Its
// policy lists the hashes of its one script and one style. So model output would not run, even as
// a script in the page. The document says only what the port does. The chat page needs no
// key: it asks the user for the key that its requests need.

package openai

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
)

//go:embed page/*.html page/*.css page/*.js page/*.txt page/*.json
var pageFiles embed.FS

// pageScripts are the scripts of the chat page, concatenated in this order.
var pageScripts = strings.Fields(
	"kept highlight formula markdown server sessions answer composer chat")

func pageFile(name string) string {
	text, _ := pageFiles.ReadFile("page/" + name) // a test reads each page
	return string(text)
}

// chatPage is the assembled chat page and its policy.
var chatPage = sync.OnceValues(func() ([]byte, string) {
	tables, _ := json.Marshal(map[string]string{"languages": assets.Languages,
		"formulas": assets.Formulas})
	script := "\"use strict\";\nconst tables = " + string(tables) + ";\n"
	for _, name := range pageScripts {
		script += pageFile(name + ".js")
	}
	page := []byte(strings.NewReplacer("<style></style>", "<style>"+pageFile("chat.css")+"</style>",
		"<script></script>", "<script>"+script+"</script>").Replace(pageFile("chat.html")))
	return page, policyOf(page)
})

// policyOf allows a page's own script and style, and requests to the server it came from.
func policyOf(page []byte) string {
	return "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'; script-src " + hashOf(page, "script") +
		"; style-src " + hashOf(page, "style")
}

// hashOf is the hash of the content of the page's element, in a policy's form.
func hashOf(page []byte, element string) string {
	_, text, _ := bytes.Cut(page, []byte("<"+element+">"))
	text, _, _ = bytes.Cut(text, []byte("</"+element+">"))
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *port) showPage(e *answer.Exchange, _ *http.Request) (any, *fields.Fault) {
	page, policy := chatPage()
	writeHTML(e, page, policy)
	return nil, nil
}

func writeHTML(e *answer.Exchange, page []byte, policy string) {
	h := e.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // it depends on the version
	_, _ = e.Write(page)               // an error means that the browser is gone
}

type schema map[string]any

// parameter is a field of a body or of a query, parsed from a line of the table.
type parameter struct {
	Name     string
	Required bool
	Type     string // for display
	schema   schema
}

// parse reads "name type [least [most]]"; name! is required.
func parse(line string) parameter {
	words := strings.Fields(line)
	name, required := strings.CutSuffix(words[0], "!")
	return parameter{name, required, strings.Join(words[1:], " "), fieldSchema(words[1],
		words[2:])}
}

// fieldSchema is the schema of a field. Null always means absent.
func fieldSchema(kind string, bounds []string) schema {
	list := func(item string) schema {
		return schema{"type": []string{"array", "null"}, "items": schema{"type": item}}
	}
	switch kind {
	case "any":
		return schema{}
	case "strings", "integers", "objects":
		return list(strings.TrimSuffix(kind, "s"))
	case "text-or-strings":
		return schema{"anyOf": []schema{{"type": []string{"string", "null"}}, list("string")}}
	case "effort":
		return schema{"enum": []any{"none", "minimal", "low", "medium", "high", "xhigh", "max",
			nil}}
	}
	if strings.Contains(kind, "|") {
		var words []any
		for w := range strings.SplitSeq(kind, "|") {
			words = append(words, w)
		}
		return schema{"enum": append(words, nil)}
	}
	s := schema{"type": []string{kind, "null"}}
	for i, bound := range bounds {
		n, _ := strconv.ParseFloat(bound, 64) // from the table; a test reads the document
		s[[]string{"minimum", "maximum"}[i]] = n
	}
	return s
}

var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// documentFrame is page/openapi.json: the document without paths, and the errors of any request.
type documentFrame struct {
	Document schema
	Faults   schema // by status
}

func (p *port) showDocument(*answer.Exchange, *http.Request) (any, *fields.Fault) {
	text := strings.Replace(pageFile("openapi.json"), "VERSION", cmp.Or(p.Version, "0"), 1)
	var frame documentFrame
	_ = json.Unmarshal([]byte(text), &frame) // a test reads the document
	paths := map[string]schema{}
	for _, o := range p.documented() {
		method, path, _ := strings.Cut(o.route, " ")
		if paths[path] == nil {
			paths[path] = schema{}
		}
		paths[path][strings.ToLower(method)] = o.document(path, frame.Faults)
	}
	frame.Document["paths"] = paths
	return frame.Document, nil
}

func (o describedOperation) document(path string, faults schema) schema {
	id := strings.Trim(notLetters.ReplaceAllString(strings.ToLower(o.route), "_"), "_")
	d := schema{"summary": o.Summary, "operationId": id}
	var parameters []schema
	for _, m := range pathVariable.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, schema{"name": m[1], "in": "path", "required": true,
			"schema": schema{"type": "string", "minLength": 1}})
	}
	for _, line := range o.Query {
		p := parse(line)
		if kind, ok := p.schema["type"].([]string); ok {
			p.schema["type"] = kind[0] // a query has no null
		} else if words, ok := p.schema["enum"].([]any); ok {
			p.schema["enum"] = words[:len(words)-1]
		}
		parameters = append(parameters, schema{"name": p.Name, "in": "query", "schema": p.schema})
	}
	if parameters != nil {
		d["parameters"] = parameters
	}
	if o.Body != nil {
		d["requestBody"] = schema{"required": true,
			"content": schema{"application/json": schema{"schema": o.bodySchema()}}}
	}
	responses := schema{"200": schema{"description": "done", "content": o.content()}}
	maps.Copy(responses, faults)
	if o.Members == "status" && o.Body == nil { // health has a body of its own
		responses["503"] = responses["200"]
	}
	d["responses"] = responses
	return d
}

func (o describedOperation) bodySchema() schema {
	properties, required := schema{}, []string{}
	for _, line := range o.Body {
		p := parse(line)
		properties[p.Name] = p.schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return schema{"type": "object", "properties": properties, "required": required}
}

func (o describedOperation) content() schema {
	c := schema{}
	switch {
	case o.Members != "":
		c["application/json"] = schema{"schema": schema{"type": "object",
			"required": strings.Fields(o.Members)}}
	case o.route == "GET /metrics":
		c["text/plain"] = schema{"schema": schema{"type": "string"}}
	case o.Stream == "":
		c["text/html"] = schema{"schema": schema{"type": "string"}}
	}
	if o.Stream != "" {
		c[o.Stream] = schema{"schema": schema{"type": "string"}}
	}
	return c
}

var notLetters = regexp.MustCompile(`[^A-Za-z]+`)
