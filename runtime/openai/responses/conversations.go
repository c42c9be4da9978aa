// /v1/conversations: items that outlive one response, and grow with each that names them; and lists
// of items, page by page.
//
// What must stay true: items keep their order and their ids; two responses that end at the same
// time both add theirs, also from two processes; a response adds them once, in the change that ends
// it, and a failed or cancelled one adds none; a conversation too large for the store is an error.

package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
)

// storedConversation is the value of a record; the conversation's id is its key.
type storedConversation struct {
	CreatedAt int64
	Metadata  json.RawMessage
	Responses []string          `json:",omitempty"` // stored ones that have added items
	Items     []json.RawMessage // oldest first
}

type conversationObject struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"` // conversation
	CreatedAt int64           `json:"created_at"`
	Metadata  json.RawMessage `json:"metadata"`
}

func (s *storedConversation) object(id string) conversationObject {
	return conversationObject{id, "conversation", s.CreatedAt, s.Metadata}
}

// recordStore is a store, or a change of it.
type recordStore interface {
	Get(kind records.Kind, key string) (records.Record, bool)
	Put(r records.Record) error
}

func getConversation(store recordStore, id string) (s storedConversation, ok bool) {
	record, ok := store.Get(records.KindConversation, id)
	ok = ok && json.Unmarshal(record.Value, &s) == nil
	return s, ok
}

func putConversation(store recordStore, id string, s storedConversation) error {
	items := s.Items
	s.Items = []json.RawMessage{}
	value, _ := answer.Marshal(s) // our own type
	err := store.Put(records.Record{Kind: records.KindConversation, Key: id,
		Value: withItems(value, items)})
	if errors.Is(err, records.ErrTooLarge) {
		return fields.Invalid("items", "the conversation is too large: %s. Start another one or "+
			"delete items", err)
	}
	return err
}

// withItems puts items into the empty list at the end of a stored conversation: they may be large,
// and the encoder would copy them four times.
func withItems(value []byte, items []json.RawMessage) []byte {
	n := len(value)
	for _, item := range items {
		n += len(item) + 1
	}
	const end = "]}"
	all := append(make([]byte, 0, n), bytes.TrimSuffix(value, []byte(end))...)
	for i, item := range items {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, item...)
	}
	return append(all, end...)
}

// readItems reads the member items, and adds a fault for those that a response could not read after
// the items before.
func (p *API) readItems(o *fields.Object, existing []json.RawMessage) (items []json.RawMessage) {
	in := &inputReader{conv: &request.Conversation{}, store: p.store, requests: map[string]bool{}}
	for _, v := range fields.StoredValues(o.Ctx(), existing, "conversation") {
		in.appendItem(v, nil)
	}
	var list []fields.Value
	if o.Has("items") {
		list = o.Get("items").Messages()
	}
	for i, v := range list {
		in.appendItem(v, list[i+1:])
	}
	if o.Fault() != nil {
		return nil
	}
	for _, v := range list { // after the texts that were read are released
		items = append(items, completeItem(v.Raw))
	}
	return items
}

func (p *API) CreateConversation(e *answer.Exchange, _ *http.Request, o *fields.Object) (
	any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id, s := answer.NewID("conv_"), storedConversation{CreatedAt: now(),
		Metadata: request.Metadata(o), Items: p.readItems(o, nil)}
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	if err := putConversation(p.store, id, s); err != nil {
		return nil, ChangeFault(err)
	}
	return s.object(id), nil
}

func (p *API) conversationOf(e *answer.Exchange, r *http.Request) (id string, s storedConversation,
	f *fields.Fault) {
	id = r.PathValue("id")
	s, ok := getConversation(p.forOwner(e.Client).store, id)
	if !ok {
		f = fields.NotFound("conversation_id", "Conversation", id)
	}
	return id, s, f
}

func (p *API) ShowConversation(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	id, s, f := p.conversationOf(e, r)
	return s.object(id), f
}

func (p *API) UpdateConversation(e *answer.Exchange, r *http.Request, o *fields.Object) (
	any, *fields.Fault) {
	metadata := request.Metadata(o)
	if o.Need("metadata"); o.Fault() != nil {
		return nil, o.Fault()
	}
	return p.forOwner(e.Client).changeConversation(r, func(_ *records.Change,
		s *storedConversation) error {
		s.Metadata = metadata
		return nil
	})
}

// changeConversation changes the conversation in the path and answers with it or change's fault.
func (p *API) changeConversation(r *http.Request, change func(*records.Change,
	*storedConversation) error) (any, *fields.Fault) {
	id := r.PathValue("id")
	var s storedConversation
	if err := p.store.Change(func(c *records.Change) (err error) {
		var ok bool
		if s, ok = getConversation(c, id); !ok {
			return fields.NotFound("conversation_id", "Conversation", id)
		}
		if err = change(c, &s); err == nil {
			err = putConversation(c, id, s)
		}
		return err
	}); err != nil {
		return nil, ChangeFault(err)
	}
	return s.object(id), nil
}

func (p *API) DeleteConversation(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	s, ok := getConversation(p.store, id)
	if err := p.clean(id, s.Responses); err != nil {
		return nil, ChangeFault(err)
	}
	err := p.store.Change(func(c *records.Change) error {
		s, _ = getConversation(c, id)
		for _, response := range s.Responses {
			deleteResponse(c, response)
		}
		ok = c.Delete(records.KindConversation, id)
		return nil
	})
	switch {
	case err != nil:
		return nil, ChangeFault(err)
	case !ok:
		return nil, fields.NotFound("conversation_id", "Conversation", id)
	}
	return deletion{id, "conversation.deleted", true}, nil
}

func (p *API) ListItems(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	_, s, f := p.conversationOf(e, r)
	if f != nil {
		return nil, f
	}
	return pageOf(r, s.Items)
}

func (p *API) AddItems(e *answer.Exchange, r *http.Request, o *fields.Object) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	o.Need("items")
	_, conv, _ := p.conversationOf(e, r)
	items := p.readItems(o, conv.Items)
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	_, f := p.changeConversation(r, func(_ *records.Change, s *storedConversation) error {
		s.Items = append(s.Items, items...)
		return nil
	})
	return pageWith(items, false), f
}

func (p *API) ShowItem(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	_, s, f := p.conversationOf(e, r)
	if f != nil {
		return nil, f
	}
	i := slices.IndexFunc(s.Items, itemNamed(r))
	if i < 0 {
		return nil, fields.NotFound("item_id", "Item", r.PathValue("item"))
	}
	return s.Items[i], nil
}

func (p *API) DeleteItem(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	if _, s, f := p.conversationOf(e, r); f == nil { // most of its responses have the item
		if err := p.clean("", s.Responses); err != nil {
			return nil, ChangeFault(err)
		}
	}
	return p.changeConversation(r, func(c *records.Change, s *storedConversation) error {
		n, id := len(s.Items), r.PathValue("item")
		if s.Items = slices.DeleteFunc(s.Items, itemNamed(r)); len(s.Items) == n {
			return fields.NotFound("item_id", "Item", id)
		}
		s.Responses = slices.DeleteFunc(s.Responses, func(response string) bool {
			record, _ := c.Get(records.KindResponse, response)
			return bytes.Contains(record.Value, []byte(id)) && deleteResponse(c, response)
		})
		c.Delete(records.KindConversation, r.PathValue("id")) // from the file's log too
		return nil
	})
}

func itemNamed(r *http.Request) func(json.RawMessage) bool {
	return func(b json.RawMessage) bool { return idOf(b) == r.PathValue("item") }
}

// readConversation puts the response's conversation before its input.
func (r *responseRequest) readConversation(o *fields.Object, name string) {
	v, in := o.Get(name), &r.in
	switch v.Kind() {
	case jsondoc.Null:
		return
	case jsondoc.Object:
		r.conversation = v.Object().Text("id")
	default:
		r.conversation = v.Text()
	}
	s, ok := getConversation(in.store, r.conversation)
	if !ok {
		o.AddFault(fields.NotFound(name, "Conversation", r.conversation))
	}
	in.hasHistory = true
	items := fields.StoredValues(o.Ctx(), s.Items, name)
	n := len(items)
	if v := o.Get("input"); v.Kind() == jsondoc.Array {
		items = append(items, v.Messages()...) // the items after the conversation
	}
	for i, it := range items[:n] {
		in.appendItem(it, items[i+1:])
	}
	r.input = s.Items
}

// appendToConversation adds the response's items to its conversation.
func (r *form) appendToConversation(c *records.Change) error {
	status := r.response.Status
	if r.req.conversation == "" || status != "completed" && status != "incomplete" {
		return nil
	}
	items := r.req.ownItems
	for _, item := range r.response.Output {
		b, err := answer.Marshal(item)
		if err != nil {
			return err
		}
		items = append(items, b)
	}
	s, ok := getConversation(c, r.req.conversation)
	if !ok {
		return nil
	}
	s.Items = append(s.Items, items...)
	if r.req.store {
		s.Responses = append(s.Responses, r.response.ID)
	}
	return putConversation(c, r.req.conversation, s)
}

const (
	defaultPage = 20
	maxPage     = 1000 // Anthropic's
)

type itemPage struct {
	Object  string            `json:"object"` // list
	Data    []json.RawMessage `json:"data"`
	FirstID string            `json:"first_id"`
	LastID  string            `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// pageOf is a page of items, which are passed oldest first. The default order is desc,
// but asc of chat completions.
func pageOf(r *http.Request, items []json.RawMessage) (any, *fields.Fault) {
	query := r.URL.Query()
	items = slices.Clone(items)
	order := query.Get("order")
	if order == "" && strings.HasPrefix(r.URL.Path, "/v1/chat/") {
		order = "asc"
	}
	switch order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return nil, fields.Invalid("order", "order is %q, it must be asc or desc", order)
	}
	limit := defaultPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, fields.Invalid("limit", "limit is %q, it must be a number of 1 to %d", text,
				maxPage)
		}
		limit = n
	}
	if afterID := query.Get("after"); afterID != "" {
		i := slices.IndexFunc(items, func(b json.RawMessage) bool { return idOf(b) == afterID })
		if i < 0 {
			return nil, fields.Invalid("after", "after is %q, there is no item with this id",
				afterID)
		}
		items = items[i+1:]
	}
	return pageWith(items[:min(limit, len(items))], len(items) > limit), nil
}

func pageWith(items []json.RawMessage, hasMore bool) itemPage {
	page := itemPage{Object: "list", Data: append([]json.RawMessage{}, items...), HasMore: hasMore}
	if n := len(items); n > 0 {
		page.FirstID, page.LastID = idOf(items[0]), idOf(items[n-1])
	}
	return page
}

func idOf(item json.RawMessage) string {
	var it struct{ ID string }
	_ = json.Unmarshal(item, &it) // it was parsed when it was stored
	return it.ID
}
