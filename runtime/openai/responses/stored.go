// The stored responses for previous_response_id, GET and DELETE, as records of the session's store,
// and their routes: the response, its events, its input, its cancellation, its deletion.
//
// A response contains the conversation that led to it, so an expired or deleted ancestor breaks
// nothing. A background response is stored while it runs, with an expiry: if it is found later, its
// process has ended.

package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/kv"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

// storedResponse is the value of a record; the response's id is its key, and the ids of its items
// are further keys.
type storedResponse struct {
	Body  json.RawMessage            // the body for GET
	Items map[string]json.RawMessage // output items by id, for item_reference
	Input []json.RawMessage          `json:",omitempty"` // items before the answer, oldest first
	Conv  request.Conversation       `json:"Talk"`       // everything up to the answer, included
	Log   *eventLog                  `json:",omitempty"`
	// Until is the expiry of a running response unless it is updated; zero: it has ended
	Until time.Time `json:",omitzero"`
	// of a running response: for resuming it in another process
	Request json.RawMessage `json:",omitempty"`
	Tokens  []int32         `json:",omitempty"`
	Salt    string          `json:",omitempty"`
	// Sampled is how many messages at the end of Conv are the response's
	Sampled int `json:",omitempty"`
	// Pages are those of its turns that may be on the disk
	Pages []kv.Hash `json:",omitempty"`
}

// takeoverWait is how long a response whose process has ended waits for another process.
const takeoverWait = 10 * time.Minute

func putResponse(s recordStore, id string, r storedResponse) error {
	value, _ := answer.Marshal(r) // our own type
	return s.Put(records.Record{Kind: records.KindResponse, Key: id,
		Also: slices.Collect(maps.Keys(r.Items)), Value: value})
}

// getResponse finds a response by its id. If its process ended while it ran, it has failed.
func getResponse(s records.Store, id string) (r storedResponse, ok bool) {
	record, ok := s.Get(records.KindResponse, id)
	ok = ok && record.Key == id && json.Unmarshal(record.Value, &r) == nil
	until := r.Until
	if len(r.Tokens) > 0 {
		until = until.Add(takeoverWait)
	}
	if ok && r.running() && time.Now().After(until) {
		r.fail()
	}
	return r, ok
}

func (r *storedResponse) running() bool { return !r.Until.IsZero() }

// fail makes a response of an ended process a failed one.
func (r *storedResponse) fail() {
	r.Until, r.Request, r.Tokens = time.Time{}, nil, nil
	var body map[string]json.RawMessage
	if json.Unmarshal(r.Body, &body) != nil {
		return
	}
	body["status"] = json.RawMessage(`"failed"`)
	body["error"], _ = answer.Marshal(responseError{fields.KindServer, fields.KindServer,
		"the server ended while it wrote this response; send the request again"})
	var output []map[string]json.RawMessage
	if json.Unmarshal(body["output"], &output) == nil && len(output) > 0 {
		last := output[len(output)-1] // no process will finish it
		if string(last["status"]) == `"in_progress"` {
			last["status"] = json.RawMessage(`"incomplete"`)
			body["output"], _ = answer.Marshal(output)
		}
	}
	r.Body, _ = answer.Marshal(body)
	if r.Log != nil {
		event, _ := answer.Marshal(map[string]any{"type": "response.failed",
			"sequence_number": r.Log.last() + 1, "response": r.Body})
		r.Log.entries = append(r.Log.entries, loggedEvent{Kind: "response.failed",
			Last: r.Log.last() + 1, Event: event})
	}
}

func (r *storedResponse) background() bool {
	var body struct{ Background bool }
	_ = json.Unmarshal(r.Body, &body) // our own
	return body.Background
}

func (r *storedResponse) output() []json.RawMessage {
	var body struct{ Output []json.RawMessage }
	_ = json.Unmarshal(r.Body, &body) // our own
	return body.Output
}

func getItem(s records.Store, id string) (json.RawMessage, bool) {
	var r storedResponse
	record, ok := s.Get(records.KindResponse, id)
	if !ok || json.Unmarshal(record.Value, &r) != nil {
		return nil, false
	}
	item, ok := r.Items[id]
	return item, ok
}

func (p *API) Show(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	running := p.job(id)
	s, ok := getResponse(p.store, id)
	if running != nil {
		s.Body, s.Log, ok = running.current(), running.log, true
	}
	if !ok {
		return nil, noResponse(id)
	}
	if r.URL.Query().Get("stream") != "true" {
		return s.Body, nil
	}
	afterNumber := -1
	if from := r.URL.Query().Get("starting_after"); from != "" {
		n, err := strconv.Atoi(from)
		if err != nil || n < 0 {
			return nil, fields.Invalid("starting_after", "starting_after is %q, it must be the "+
				"sequence number of an event", from)
		}
		afterNumber = n
	}
	switch {
	case running == nil && s.running():
		return nil, p.leaseFault(id, "stream",
			"another process writes this response; get it without stream until it has ended")
	case s.Log == nil:
		return nil, fields.Invalid("stream", "the events of this response were not kept; get it "+
			"without stream")
	}
	p.watch(e, r, s.Log, afterNumber)
	return nil, nil
}

// leaseFault refuses a response of another process. If that has crashed, the lease expires and
// this process takes the response over.
func (p *API) leaseFault(id, param, message string) *fields.Fault {
	record, _ := p.store.Get(records.KindRunning, id)
	var now lease
	_ = json.Unmarshal(record.Value, &now) // none: it has just ended
	return fields.Refusal(http.StatusConflict, param, "", message).WithRetryAfter(
		int(time.Until(now.Until)/time.Second) + 1)
}

func (p *API) Cancel(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	if running := p.job(id); running != nil {
		running.stop()
	}
	s, ok := getResponse(p.store, id)
	switch {
	case !ok:
		return nil, noResponse(id)
	case s.running():
		return nil, p.leaseFault(id, "response_id",
			"another process writes this response; cancel it there")
	case !s.background():
		return nil, fields.Invalid("response_id", "only a response with background true can be "+
			"cancelled; close the connection of another one")
	}
	return s.Body, nil
}

func (p *API) Delete(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	running := p.job(id)
	if running != nil {
		running.stop()
	}
	exists := running != nil
	if err := p.clean(id, []string{id}); err != nil {
		return nil, ChangeFault(err)
	}
	if err := p.store.Change(func(c *records.Change) error {
		exists = deleteResponse(c, id) || exists
		return nil
	}); err != nil {
		return nil, ChangeFault(err)
	}
	if !exists {
		return nil, noResponse(id)
	}
	return deletion{id, "response", true}, nil
}

// deleteResponse deletes a response with the sampled tokens of its turn.
func deleteResponse(c *records.Change, id string) bool {
	var s storedResponse
	record, ok := c.Get(records.KindResponse, id)
	if ok && json.Unmarshal(record.Value, &s) == nil {
		list := s.Conv.Messages
		session.Forget(c, s.Salt, list[max(0, len(list)-s.Sampled):])
	}
	c.Delete(records.KindRunning, id) // its writer then finds it deleted
	return c.Delete(records.KindResponse, id)
}

// clean deletes what responses have outside the store, before their records go, which name it: the
// idle tools of owner, one of them or their conversation, with their files, and pages of the prefix
// cache on the disk. owner "": no tools.
func (p *API) clean(owner string, ids []string) error {
	if owner != "" {
		p.tools.CloseOf(p.owner, owner)
	}
	var pages kv.PageLog // responses of a conversation have many in common
	for _, id := range ids {
		s, _ := getResponse(p.store, id)
		pages.Add(s.Pages)
	}
	return p.forget(&pages)
}

func (p *API) forget(pages *kv.PageLog) error {
	if names := pages.Names(); p.ForgetPages != nil && len(names) > 0 {
		return p.ForgetPages(names)
	}
	return nil
}

type deletion struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// ChangeFault is the fault of a change that was refused, by its own rules or by the disk.
func ChangeFault(err error) *fields.Fault {
	if f, ok := errors.AsType[*fields.Fault](err); ok {
		return f
	}
	status := http.StatusServiceUnavailable
	if errors.Is(err, records.ErrFull) || errors.Is(err, records.ErrTooLarge) ||
		errors.Is(err, records.ErrDiskFull) {
		status = http.StatusInsufficientStorage
	}
	return fields.Failure(status, "", "nothing was changed: "+err.Error())
}

func noResponse(id string) *fields.Fault { return fields.NotFound("response_id", "Response", id) }

func (p *API) InputItems(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	s, ok := getResponse(p.store, id)
	if !ok {
		return nil, noResponse(id)
	}
	return pageOf(r, s.Input)
}

// now is in seconds since 1970.
func now() int64 { return time.Now().Unix() }

// recordInput is the input as a list of items with ids; a string is a user's message. References
// are resolved.
func recordInput(o *fields.Object, in *inputReader) (items []json.RawMessage) {
	switch v := o.Get("input"); v.Kind() {
	case jsondoc.String:
		item, _ := answer.Marshal(map[string]any{"type": "message", "role": "user",
			"content": v.Text()})
		items = append(items, item)
	case jsondoc.Array:
		for _, it := range v.Messages() {
			raw := it.Raw
			if io := it.Object(); io.Text("type") == "item_reference" {
				if raw, _ = in.item(io.Text("id")); raw == nil {
					continue
				}
			}
			items = append(items, raw)
		}
	}
	for i, raw := range items {
		items[i] = completeItem(raw)
	}
	return items
}

// completeItem fills in an item's optional members: an id, a type, a status, and parts if the
// content is one text.
func completeItem(raw json.RawMessage) json.RawMessage {
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
			m[name], _ = answer.Marshal(v)
		}
	}
	set("type", "message")
	prefix := map[string]string{"message": "msg_", "function_call": "fc_",
		"function_call_output": "fco_", "reasoning": "rs_"}[text("type")]
	set("id", answer.NewID(cmp.Or(prefix, "item_")))
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
			m["content"], _ = answer.Marshal([]contentPart{part})
		}
	}
	if b, err := answer.Marshal(m); err == nil {
		return b
	}
	return raw
}

// compactedText is the text of a compaction item, "" if another server made it; whole: it replaces
// everything before it.
func compactedText(o *fields.Object) (text string, full bool) {
	sealed := o.Text("encrypted_content")
	body, full := strings.CutPrefix(sealed, fullSeal)
	if full {
		sealed = request.SealVersion + body
	}
	return strings.TrimSpace(request.Unseal(sealed)), full
}
