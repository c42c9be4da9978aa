// The API reference against the port: each route has a request there that the port answers, and its
// answer has the shape of the example; each field has a meaning, and its default is true.

package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

var updateRoutes = flag.Bool("update-routes", false, "write the answers of page/routes.json anew")

// shapeOf is a value with its texts, numbers and bits as their types, and of a list its first.
func shapeOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		of := map[string]any{}
		for name, member := range v {
			of[name] = shapeOf(member)
		}
		return of
	case []any:
		if len(v) == 0 {
			return []any{}
		}
		return []any{shapeOf(v[0])}
	}
	return fmt.Sprintf("%T", v)
}

// TestReferenceExamples sends the request of each route, in the order of the table, with ids of
// what there is in the place of the example's.
func TestReferenceExamples(t *testing.T) {
	text := hosttest.Must(os.ReadFile("page/routes.json"))(t)
	var examples map[string]openai.Example
	hosttest.Check(t, json.Unmarshal(text, &examples))
	says := func(r session.Request) ([]session.Event, error) {
		events, err := sessiontest.Answers("Hello!")(r)
		if strings.Contains(sessiontest.History(r), "wait") { // to be cancelled
			events = slices.Insert(events, 0,
				session.Event(sessiontest.Pause{Until: t.Context().Done()}))
		}
		return events, err
	}
	srv, _ := porttest.Server(t, says, func(o *openai.Options) {
		o.Offers = func() (kinds, labels []string) { return []string{"python"}, nil }
	})
	post := func(path, body string) map[string]any {
		r := porttest.Post(t, srv, path, body)
		if r.Status != 200 {
			t.Fatalf("%s: %s", path, r.Body)
		}
		return porttest.Decode(t, r.Body)
	}
	ids := func(route, path string) string {
		switch {
		case strings.Contains(path, "file_1"):
			return strings.Replace(path, "file_1", idIn(t, upload(t, srv, "batch", "a", requestLines(1))), 1)
		case strings.HasPrefix(path, "/v1/batches/") && strings.HasSuffix(route, "/cancel"):
			id := batchOf(t, srv, strings.ReplaceAll(requestLines(1), "question", "wait"))
			porttest.Eventually(t, func() (any, bool) {
				r := porttest.Ask(t, "GET", srv.URL+"/v1/batches/"+id, "")
				return r.Body, strings.Contains(r.Body, "in_progress")
			})
			return strings.Replace(path, "batch_1", id, 1)
		case strings.HasPrefix(path, "/v1/batches") && strings.HasPrefix(route, "GET"):
			id := batchOf(t, srv, requestLines(1))
			porttest.Eventually(t, func() (any, bool) { // all have ended
				r := porttest.Ask(t, "GET", srv.URL+"/v1/batches", "")
				return r.Body, strings.Count(r.Body, `"status":"completed"`) ==
					strings.Count(r.Body, `"object":"batch"`)
			})
			return strings.Replace(path, "batch_1", id, 1)
		case strings.HasPrefix(path, "/v1/messages/batches/"):
			text := "hello"
			if strings.HasSuffix(route, "/cancel") {
				text = "wait"
			}
			return strings.Replace(path, "msgbatch_1", messageBatchOf(t, srv, text), 1)
		case route == "GET /v1/messages/batches":
			porttest.Eventually(t, func() (any, bool) { // that of the example before has ended
				r := porttest.Ask(t, "GET", srv.URL+path, "")
				return r.Body, strings.Contains(r.Body, `"processing_status":"ended"`)
			})
		case route == "GET /v1/chat/completions":
			storedCompletion(t, srv)
		case strings.HasSuffix(route, "/cancel"):
			id := post("/v1/responses", `{"input":"wait","background":true}`)["id"].(string)
			return strings.Replace(path, "resp_1", id, 1)
		case strings.Contains(path, "resp_1"):
			id := post("/v1/responses", `{"input":"a"}`)["id"].(string)
			return strings.Replace(path, "resp_1", id, 1)
		case strings.Contains(path, "chatcmpl_1"):
			return strings.Replace(path, "chatcmpl_1", storedCompletion(t, srv), 1)
		case strings.Contains(path, "conv_1"):
			id := post("/v1/conversations", `{"metadata":{"topic":"a"}}`)["id"].(string)
			item := porttest.At(post("/v1/conversations/"+id+"/items",
				`{"items":[{"role":"user","content":"Say hello."}]}`), "data", 0, "id").(string)
			return strings.NewReplacer("conv_1", id, "msg_1", item).Replace(path)
		}
		return path
	}
	routes := []string{}
	for _, o := range openai.Document() {
		e, ok := examples[o.Route]
		if !ok || !strings.HasSuffix(e.About, ".") {
			t.Errorf("%s has no sentence", o.Route)
		}
		routes = append(routes, o.Route)
		method, path, _ := strings.Cut(o.Route, " ")
		if strings.Contains(path, "{") == (e.Path == "") {
			t.Errorf("%s: its example is at %q", o.Route, e.Path)
		}
		if e.Path != "" {
			path = e.Path
		}
		send := string(e.Send)
		if strings.Contains(send, "file_1") {
			send = ids("", send)
		}
		r := porttest.Ask(t, method, srv.URL+ids(o.Route, path), send)
		if o.Route == "POST /v1/files" {
			r = upload(t, srv, "batch", "requests.jsonl", requestLines(1))
		}
		if r.Status != 200 {
			t.Errorf("%s: %d %s", o.Route, r.Status, r.Body)
			continue
		}
		if !strings.Contains(r.Header.Get("Content-Type"), "application/json") ||
			o.Route == "GET /openapi.json" { // it is long
			continue
		}
		if *updateRoutes {
			e.Answer = json.RawMessage(r.Body)
			examples[o.Route] = e
			continue
		}
		var have, want any
		if json.Unmarshal(e.Answer, &have) != nil || json.Unmarshal([]byte(r.Body), &want) != nil ||
			!reflect.DeepEqual(shapeOf(have), shapeOf(want)) {
			t.Errorf("%s: the example is %s\nthe answer %s", o.Route, e.Answer, r.Body)
		}
	}
	for route := range examples {
		if !slices.Contains(routes, route) {
			t.Errorf("%s has an example and is no route", route)
		}
	}
	if *updateRoutes {
		var b bytes.Buffer
		b.WriteString("{\n")
		for i, route := range routes {
			var line bytes.Buffer
			enc := json.NewEncoder(&line)
			enc.SetEscapeHTML(false)
			hosttest.Check(t, enc.Encode(examples[route]))
			end := map[bool]string{true: ",", false: ""}[i < len(routes)-1]
			fmt.Fprintf(&b, "%q: %s%s\n", route, bytes.TrimSpace(line.Bytes()), end)
		}
		b.WriteString("}\n")
		hosttest.Check(t, os.WriteFile("page/routes.json", b.Bytes(), 0o644))
	}
}

// requestOf is what a body asks for, without the functions that answer it.
func requestOf(read answer.Reader, body map[string]any, t *testing.T) string {
	text, _ := json.Marshal(body)
	o, f := fields.ParseObject(text)
	if f != nil {
		t.Fatal(f)
	}
	r, _ := read(o)
	all := ""
	for i := range reflect.ValueOf(*r).NumField() {
		field := reflect.ValueOf(*r).Field(i)
		if field.Kind() != reflect.Func && field.CanInterface() {
			value, err := json.Marshal(field.Interface())
			all += fmt.Sprint(reflect.TypeOf(*r).Field(i).Name, string(value), err, "\n")
		}
	}
	return randomSeed.ReplaceAllString(all, "") // without a requested seed
}

var randomSeed = regexp.MustCompile(`"Seed":\d+,`)

// TestReferenceFields: each field has a row on the page with a meaning, none is left over, and a
// default that is sent asks for the same as one that is not.
func TestReferenceFields(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	page := porttest.Ask(t, "GET", srv.URL+"/docs", "").Body
	used := map[string]bool{}
	readers, tried := openai.Readers(), 0
	for _, o := range openai.Document() {
		for _, f := range openai.Reference(o.Route) {
			used[f.Of] = true
			if !strings.HasSuffix(f.Meaning, ".") ||
				!strings.Contains(page, "<td>"+html.EscapeString(f.Meaning)+"</td>") {
				t.Errorf("%s %s: its meaning is %q", o.Route, f.Name, f.Meaning)
			}
			var value any
			if json.Unmarshal([]byte(f.Default), &value) != nil {
				value = f.Default
				if !slices.Contains([]string{"medium", "auto", "disabled"}, f.Default) {
					continue // it is described in words
				}
			}
			if readers[o.Route] == nil || f.Name == "model" {
				continue
			}
			body := bodyFor(t, o)
			without := requestOf(readers[o.Route], body, t)
			if body[f.Name] != nil {
				continue
			}
			body[f.Name] = value
			if with := requestOf(readers[o.Route], body, t); with != without {
				t.Errorf("%s: %s has another default than %s:\n%s\n%s", o.Route, f.Name, f.Default,
					without, with)
			}
			tried++
		}
	}
	if tried < 80 {
		t.Errorf("only %d defaults were tried", tried)
	}
	for _, name := range slices.Sorted(maps.Keys(openai.ReferenceNames())) {
		if !used[name] {
			t.Errorf("%s is no field of a route", name)
		}
	}
}

// A request on the page is for the server that shows it, and names the key if the server needs one.
func TestReferenceRequests(t *testing.T) {
	for _, key := range []string{"", "secret"} {
		srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
			o.APIKey = key
		})
		page := html.UnescapeString(porttest.Ask(t, "GET", srv.URL+"/docs", "").Body)
		want := "curl " + srv.URL + "/v1/chat/completions"
		if !strings.Contains(page, want) || strings.Contains(page, "$OSSRUN_API_KEY") != (key != "") ||
			strings.Contains(page, "secret") {
			t.Errorf("with the key %q the page lacks %s", key, want)
		}
	}
}
