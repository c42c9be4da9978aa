// Stored objects: /v1/files, which batches read and write, and chat completions. An object and its
// content, of a completion the messages before it, are two records with its id; a batch's object is
// one like a file's.
//
// What must stay true: a client finds only its own; an object is deleted with its content.

package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
)

// object is a file, batch or completion as clients see it.
type object map[string]any

func putObject(c *records.Change, kind records.Kind, o object) error {
	value, _ := answer.Marshal(o) // our own
	return c.Put(records.Record{Kind: kind, Key: o["id"].(string), Value: value})
}

func putContent(c *records.Change, id string, content []byte) error {
	return c.Put(records.Record{Kind: records.KindContent, Key: id, Value: content})
}

// putFile stores a file's object and its content.
func putFile(c *records.Change, id, name, purpose string, content []byte) (object, error) {
	o := object{"id": id, "object": "file", "bytes": len(content), "filename": name,
		"created_at": now(), "purpose": purpose, "status": "processed"}
	return o, errors.Join(putObject(c, records.KindFile, o), putContent(c, id, content))
}

// content is nil if the client has none with this id.
func (p *API) content(id string) []byte {
	record, _ := p.store.Get(records.KindContent, id)
	return record.Value
}

func (p *API) Upload(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	if f := p.ReadForm(e, r); f != nil {
		return nil, f
	}
	if purpose := r.FormValue("purpose"); purpose != "batch" {
		return nil, fields.Invalid("purpose", "purpose is %q, it must be batch; a file for the "+
			"model must be in its message", fields.Brief(purpose))
	}
	form, head, err := r.FormFile("file")
	if err != nil {
		return nil, fields.Invalid("file", "the form has no file: %v", err)
	}
	var o object
	content, err := io.ReadAll(form)
	if err == nil {
		err = p.forOwner(e.Client).store.Change(func(c *records.Change) (err error) {
			o, err = putFile(c, answer.NewID("file-"), fields.Brief(head.Filename), "batch",
				content)
			return err
		})
	}
	if err != nil {
		return nil, ChangeFault(err)
	}
	return o, nil
}

// find finds the object of a path, unless it is a batch of the other API.
func (p *API) find(kind records.Kind, r *http.Request) (records.Record, *fields.Fault) {
	id := r.PathValue("id")
	record, ok := p.store.Get(kind, id)
	if !ok || strings.HasPrefix(id, "msgbatch_") != strings.HasPrefix(r.URL.Path, messageRoute) {
		return record, fields.NotFound("id", string(kind), id)
	}
	return record, nil
}

// ShowObject shows a file, batch or completion.
func (p *API) ShowObject(kind records.Kind) answer.Handler {
	return func(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		record, f := p.forOwner(e.Client).find(kind, r)
		return record.Value, f
	}
}

// isWanted tells whether an object has the purpose, model and metadata of a list's query.
func (o object) isWanted(query url.Values) bool {
	metadata, _ := o["metadata"].(map[string]any)
	for name := range query {
		key, inMetadata := strings.CutPrefix(name, "metadata[")
		value := o[name]
		if inMetadata {
			value = metadata[strings.TrimSuffix(key, "]")]
		}
		if (inMetadata || name == "purpose" || name == "model") && value != query.Get(name) {
			return false
		}
	}
	return true
}

// ListObjects lists the objects of a kind whose ids begin with prefix, as the query filters them.
func (p *API) ListObjects(kind records.Kind, prefix string) answer.Handler {
	return func(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		var list []json.RawMessage
		all := p.forOwner(e.Client).store.List(kind)
		slices.SortFunc(all, func(a, b records.Record) int { // keys begin with their time
			return cmp.Compare(a.Key, b.Key)
		})
		for _, record := range all {
			var o object
			_ = json.Unmarshal(record.Value, &o) // our own
			if strings.HasPrefix(record.Key, prefix) && o.isWanted(r.URL.Query()) {
				list = append(list, record.Value)
			}
		}
		return pageOf(r, list)
	}
}

func (p *API) ShowContent(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	if _, f := p.find(records.KindFile, r); f != nil {
		return nil, f
	}
	writeLines(e, p.content(r.PathValue("id")))
	return nil, nil
}

func writeLines(e *answer.Exchange, text []byte) {
	e.Header().Set("Content-Type", "application/x-jsonlines")
	e.Header().Set("Content-Length", strconv.Itoa(len(text)))
	for part := range slices.Chunk(text, 1<<20) {
		if answer.WriteNow(e, part) != nil {
			break // the client is gone
		}
	}
}

// DeleteObject deletes a file or completion, and answers with an object of this name.
func (p *API) DeleteObject(kind records.Kind, name string) answer.Handler {
	return func(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		p := p.forOwner(e.Client)
		if _, f := p.find(kind, r); f != nil {
			return nil, f
		}
		id := r.PathValue("id")
		if err := p.store.Change(func(c *records.Change) error {
			c.Delete(kind, id)
			c.Delete(records.KindContent, id)
			return nil
		}); err != nil {
			return nil, ChangeFault(err)
		}
		return deletion{id, name, true}, nil
	}
}

// StoreCompletion stores a chat completion of a client with the messages before it.
func (p *API) StoreCompletion(client string, c answer.Completion, messages json.RawMessage) error {
	value, _ := answer.Marshal(c) // our own type
	return records.Owned(p.Store, client).Change(func(change *records.Change) error {
		return errors.Join(change.Put(records.Record{Kind: records.KindCompletion, Key: c.ID,
			Value: value}), putContent(change, c.ID, messages))
	})
}

func (p *API) UpdateCompletion(e *answer.Exchange, r *http.Request, o *fields.Object) (any,
	*fields.Fault) {
	metadata := request.Metadata(o)
	if o.Need("metadata"); o.Fault() != nil {
		return nil, o.Fault()
	}
	c, err := p.forOwner(e.Client).changeObject(records.KindCompletion, r.PathValue("id"),
		func(_ *records.Change, c object) error {
			c["metadata"] = metadata
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
	if _, f := p.find(records.KindCompletion, r); f != nil {
		return nil, f
	}
	var messages []object
	_ = json.Unmarshal(p.content(id), &messages) // they were read
	items := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		parts, ok := m["content"].([]any)
		if ok {
			m["content"] = nil
		}
		name := m["name"] // null if there is none
		m["id"], m["name"], m["content_parts"] = fmt.Sprintf("%s-%d", id, i), name, parts
		items[i], _ = answer.Marshal(m)
	}
	return pageOf(r, items)
}
