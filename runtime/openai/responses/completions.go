// Stored chat completions: an object like a batch's, and its request's messages as its content.
//
// What must stay true: a client finds only its own; one that is deleted is so with its messages.

package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
)

// StoreCompletion stores a chat completion of a client with the messages before it.
func (p *API) StoreCompletion(client string, c answer.Completion, messages json.RawMessage) error {
	value, err := answer.Marshal(c)
	if err != nil {
		return err
	}
	return records.Owned(p.Store, client).Change(func(change *records.Change) error {
		return errors.Join(change.Put(records.Record{Kind: records.KindCompletion, Key: c.ID,
			Value: value}), change.Put(records.Record{Kind: records.KindContent, Key: c.ID,
			Value: messages}))
	})
}

func (p *API) UpdateCompletion(e *answer.Exchange, r *http.Request, o *fields.Object) (any,
	*fields.Fault) {
	request.CheckMetadata(o, "metadata")
	if o.Need("metadata"); o.Fault() != nil {
		return nil, o.Fault()
	}
	c, err := p.forOwner(e.Client).changeObject(records.KindCompletion, r.PathValue("id"),
		func(_ *records.Change, c object) error {
			c["metadata"] = metadata(o, "metadata")
			return nil
		})
	if err != nil {
		return nil, ChangeFault(err)
	}
	return c, nil
}

func (p *API) CompletionMessages(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	if _, ok := p.store.Get(records.KindCompletion, id); !ok {
		return nil, noObject(records.KindCompletion, r)
	}
	var messages []object
	_ = json.Unmarshal(p.content(id), &messages) // they were read
	items := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		m["id"] = fmt.Sprintf("%s-%d", id, i)
		if parts, ok := m["content"].([]any); ok {
			m["content"], m["content_parts"] = nil, parts
		}
		items[i], _ = answer.Marshal(m)
	}
	return pageOf(r, items)
}
