// Package mcp makes the tools of MCP servers available to a conversation, and offers this program's
// own tools as MCP servers.
//
// What must stay true: no turn hangs, no request is refused and no prompt overflows because a
// server is slow, dead or malformed; each conversation has its own sessions, so none sees another's
// state; the tool that runs is the one that was approved.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/browser"
)

// Options of Servers. Zero values are the defaults.
type Options struct {
	// Interactive: a person waits for Open, so slow servers join later, whatever they offer.
	Interactive bool
	Start       time.Duration // for one server to connect and list its tools; 0: 20 s
	Time        time.Duration // for one call; 0: 2 minutes
	// Context is the model's context in tokens. If the tools would take more than a tenth of it, a
	// tool is described only on request. nil: all tools are always described.
	Context func() int
}

type Servers struct {
	o       Options
	cancel  context.CancelFunc // of the retries
	retries sync.WaitGroup

	mu               sync.Mutex
	sources, pending []*source
	tools            []*tool // in the order in which the servers connected
	lines            []string
	python, browser  *source // servers that replace the built-in tools
	// connections that listed the tools, for the first conversation
	unused map[*source]*connection
}

type source struct {
	Server
	label string
}

// tool is one tool of a server, as the model sees it.
type tool struct {
	source      *source
	name        string // the server's own
	description harmony.ToolDescription
}

const (
	maxTools       = 512      // of one server
	maxDescription = 4000     // characters
	maxSchema      = 64 << 10 // bytes
)

// Open connects to all servers in parallel and lists their tools. A note names each server that
// failed; it is retried until Close, and its tools then join the conversations.
func Open(ctx context.Context, list []Server, o Options) (_ *Servers, notes []string) {
	o.Start = cmp.Or(o.Start, 20*time.Second)
	o.Time = cmp.Or(o.Time, 2*time.Minute)
	s := &Servers{o: o, unused: map[*source]*connection{}}
	var life context.Context
	life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	waitCtx := ctx
	if o.Interactive {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, maxStartWait)
		defer cancel()
	}
	attempts := make([]chan listing, len(list))
	for i, server := range list {
		attempts[i] = make(chan listing, 1)
		s.retries.Go(func() { attempts[i] <- tryListing(life, server, o.Start) })
	}
	results := make([]listing, len(list))
	for i, server := range list {
		select {
		case results[i] = <-attempts[i]:
		case <-waitCtx.Done():
			select {
			case results[i] = <-attempts[i]:
			default:
			}
		}
		if results[i].source != nil {
			attempts[i] = nil
		} else {
			results[i] = listing{source: &source{server, server.Name},
				err: errors.New("it does not answer yet")}
		}
		s.sources = append(s.sources, results[i].source)
	}
	disambiguate(s.sources)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range results {
		if f.err == nil {
			s.unused[f.source] = f.conn
			notes = append(notes, s.add(f.source, f.tools)...)
			continue
		}
		notes = append(notes, skipNote(f.source.label, f.err))
		if !notFound(f.err) {
			s.pending = append(s.pending, f.source)
			s.retries.Go(func() { s.retryWithBackoff(life, f.source, attempts[i]) })
		}
	}
	return s, notes
}

// maxStartWait is how long the chat's start waits for servers.
const maxStartWait = 5 * time.Second

type listing struct {
	source *source
	conn   *connection
	tools  []*sdk.Tool
	err    error
}

func tryListing(ctx context.Context, server Server, patience time.Duration) listing {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := listing{source: &source{server, server.Name}}
	if f.conn, f.err = server.connect(ctx); f.err == nil {
		f.source.label = server.name(f.conn)
		if f.tools, f.err = listTools(ctx, f.conn); f.err != nil {
			f.conn.close()
		}
	}
	return f
}

// maxStarts limits the starts of a failing program; an address is retried without limit.
const maxStarts = 5

// retryWithBackoff waits for the first attempt, if one is running, then retries the server with
// backoff until it connects.
func (s *Servers) retryWithBackoff(life context.Context, from *source, first <-chan listing) {
	for n, pause := 1, time.Second; from.URL != "" || n < maxStarts; n++ {
		var f listing
		if first != nil {
			f, first = <-first, nil
		} else {
			select {
			case <-time.After(pause):
			case <-life.Done():
				return
			}
			f = tryListing(life, from.Server, 3*s.o.Start)
			pause = min(2*pause, time.Minute)
		}
		switch {
		case f.err == nil && life.Err() == nil:
			s.addLate(from, f)
			return
		case f.err == nil:
			f.conn.close()
			return
		case life.Err() != nil || notFound(f.err):
			return
		}
	}
}

func (s *Servers) addLate(from *source, f listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from.unnamed && slices.ContainsFunc(s.sources, func(o *source) bool {
		return o != from && (o.Name == f.source.label || o.label == f.source.label)
	}) {
		f.source.label = from.Name
	}
	s.sources[slices.Index(s.sources, from)] = f.source
	s.pending = slices.DeleteFunc(s.pending, func(one *source) bool { return one == from })
	s.unused[f.source] = f.conn
	s.add(f.source, f.tools)
}

// listTools lists a server's wanted tools once each, up to maxTools. A page without new tools is
// the last: the server's cursor does not advance.
func listTools(ctx context.Context, c *connection) (list []*sdk.Tool, err error) {
	list, err = await(ctx, func() (list []*sdk.Tool, err error) {
		seen := map[string]bool{}
		for page := (&sdk.ListToolsParams{}); ; {
			result, err := c.ListTools(ctx, page)
			if err != nil {
				return list, err
			}
			seenBefore := len(seen)
			for _, t := range result.Tools {
				if !seen[t.Name] && c.server.wants(t.Name) && len(list) < maxTools {
					list = append(list, t)
				}
				seen[t.Name] = true
			}
			page.Cursor = result.NextCursor
			if page.Cursor == "" || len(seen) == seenBefore || len(list) == maxTools {
				return list, nil
			}
		}
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, errors.New("it does not list its tools in time")
	case err != nil:
		return nil, fmt.Errorf("it does not list its tools: %s", reason(err))
	}
	return list, nil
}

// await returns what do returns, or ctx's error if ctx ends first.
func await[T any](ctx context.Context, do func() (T, error)) (result T, err error) {
	done := make(chan func() (T, error), 1)
	go func() {
		result, err := do()
		done <- func() (T, error) { return result, err }
	}()
	select {
	case answer := <-done:
		return answer()
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// add registers a server's tools; notes report which cannot be offered unchanged.
func (s *Servers) add(from *source, list []*sdk.Tool) (notes []string) {
	names := map[string]bool{}
	for _, t := range list {
		names[t.Name] = true
	}
	switch {
	case from.label == "browser" && names["search"] && names["open"] && names["find"] &&
		s.browser == nil:
		s.browser = from
		s.lines = append(s.lines, "browser: the server "+from.Name)
		return nil
	case from.label == "python" && names["python"] && s.python == nil:
		s.python = from
		s.lines = append(s.lines, "python: the server "+from.Name)
		return nil
	}
	if len(list) == maxTools {
		notes = append(notes, fmt.Sprintf("%s: only the first %d tools are used", from.label,
			maxTools))
	}
	tools, moreNotes := describeAll(from, list, s.tools)
	s.tools = append(s.tools, tools...)
	s.lines = append(s.lines, from.label+": "+browser.Count(len(list), "tool"))
	return append(notes, moreNotes...)
}

// describeAll describes a server's tools under names that others do not use; notes are as in add.
func describeAll(from *source, list []*sdk.Tool, existing []*tool) (tools []*tool, notes []string) {
	used := map[string]bool{describeTool: true}
	for _, t := range existing {
		used[t.description.Name] = true
	}
	for _, t := range list {
		d, why := describe(t)
		d.Name = session.ServerFunction(from.label, t.Name)
		for n, name := 2, d.Name; used[d.Name]; n++ {
			d.Name = fmt.Sprintf("%s_%d", name, n)
		}
		used[d.Name] = true
		if why != "" {
			notes = append(notes, fmt.Sprintf("%s: the parameters of %s %s: any object is "+
				"accepted instead", from.label, d.Name, why))
		}
		tools = append(tools, &tool{from, t.Name, d})
	}
	return tools, notes
}

// describe converts a server's tool for a request; why is the fault of an unusable schema.
func describe(t *sdk.Tool) (d harmony.ToolDescription, why string) {
	d.Description = strings.ToValidUTF8(cmp.Or(t.Description, t.Title), "\ufffd")
	d.Description = truncate(d.Description, maxDescription, " ...")
	schema, err := json.Marshal(objectSchema(t.InputSchema))
	switch {
	case err != nil || string(schema) == "null":
		why = "are not the schema of an object"
	case len(schema) > maxSchema:
		why = fmt.Sprintf("are longer than %d KiB", maxSchema>>10)
	}
	if d.Parameters = schema; why == "" {
		if _, err := countTokens([]harmony.ToolDescription{d}); err != nil {
			why = "cannot be shown to the model (" + err.Error() + ")"
		}
	}
	if why != "" {
		d.Parameters = json.RawMessage(`{"type": "object"}`)
	}
	return d, why
}

// objectSchema completes the schema of a tool's parameters; nil: it is not an object's.
func objectSchema(schema any) map[string]any {
	if schema == nil || schema == true {
		return map[string]any{"type": "object"}
	}
	object, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	kinds, several := object["type"].([]any)
	if object["type"] == nil || several && slices.Contains(kinds, "object") {
		object["type"] = "object"
	}
	for _, name := range []string{"properties", "required", "description"} {
		list, empty := object[name].([]any) // PHP encodes an empty object as a list
		if object[name] == nil || empty && len(list) == 0 {
			delete(object, name)
		}
	}
	if object["type"] != "object" {
		return nil
	}
	return object
}

// truncate shortens text to most characters and appends mark if it was longer.
func truncate(text string, limit int, mark string) string {
	if letters := []rune(text); len(letters) > limit {
		return string(letters[:limit]) + mark
	}
	return text
}

func countTokens(list []harmony.ToolDescription) (int, error) {
	if len(list) == 0 {
		return 0, nil
	}
	ids, err := harmony.RenderMessage(nil, harmony.Developer(harmony.DeveloperContent{
		Tools: harmony.Functions(list)}), harmony.RenderOptions{FunctionTools: true})
	return len(ids), err
}

// Lines describe the servers' offers, a line each.
func (s *Servers) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

// Offers tells which built-in tools servers replace, and the labels of the other servers.
func (s *Servers) Offers() (browser, python bool, labels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		if !slices.Contains(labels, t.source.label) {
			labels = append(labels, t.source.label)
		}
	}
	return s.browser != nil, s.python != nil, labels
}

// A State is a configured server as a page lists it.
type State struct {
	Label string   `json:"server_label"`
	State string   `json:"state"` // connected, connecting or failed
	Tools []string `json:"tools"`
}

func (s *Servers) States() (all []State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range s.sources {
		state := State{from.label, "failed", []string{}}
		for _, t := range s.tools {
			if t.source == from {
				state.Tools = append(state.Tools, t.name)
			}
		}
		switch {
		case slices.Contains(s.pending, from):
			state.State = "connecting"
		case len(state.Tools) > 0 || from == s.browser || from == s.python:
			state.State = "connected"
		}
		all = append(all, state)
	}
	return all
}

// claimConnection gives the connection that listed a server's tools to one conversation; with
// changed only if the server has changed its tools since.
func (s *Servers) claimConnection(from *source, to map[*source]*connection, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.unused[from]
	if c == nil || changed && !c.changed.Load() {
		return
	}
	delete(s.unused, from)
	to[from] = c
}

// Close closes the connections that no conversation uses.
func (s *Servers) Close() error {
	s.cancel()
	s.retries.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	closeAll(s.unused)
	return nil
}
