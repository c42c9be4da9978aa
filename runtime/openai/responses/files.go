// /v1/files: what batches read and write. A file's object and its content are two records with its
// id, and a batch's object is one like a file's.
//
// What must stay true: a client finds only its own; a file that is deleted is so with its content.

package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/records"
)

// object is a file, batch or completion as clients see it.
type object map[string]any

func putObject(c *records.Change, kind records.Kind, o object) error {
	value, err := answer.Marshal(o)
	if err != nil {
		return err
	}
	return c.Put(records.Record{Kind: kind, Key: o["id"].(string), Value: value})
}

// putFile stores a file's object and its content.
func putFile(c *records.Change, id, name, purpose string, content []byte) (object, error) {
	o := object{"id": id, "object": "file", "bytes": len(content), "filename": name,
		"created_at": now(), "purpose": purpose, "status": "processed"}
	return o, errors.Join(putObject(c, records.KindFile, o),
		c.Put(records.Record{Kind: records.KindContent, Key: id, Value: content}))
}

// content is nil if the client has none with this id.
func (p *API) content(id string) []byte {
	if record, ok := p.store.Get(records.KindContent, id); ok {
		return record.Value
	}
	return nil
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

// ShowObject shows a file, batch or completion.
func (p *API) ShowObject(kind records.Kind) answer.Handler {
	return func(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		record, ok := p.forOwner(e.Client).store.Get(kind, r.PathValue("id"))
		if !ok {
			return nil, noObject(kind, r)
		}
		return record.Value, nil
	}
}

func noObject(kind records.Kind, r *http.Request) *fields.Fault {
	return fields.NotFound("id", string(kind), r.PathValue("id"))
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
		ages := map[string]float64{}
		for _, record := range p.forOwner(e.Client).store.List(kind) {
			var o object
			_ = json.Unmarshal(record.Value, &o) // our own
			ages[record.Key], _ = cmp.Or(o["created_at"], o["created"]).(float64)
			if strings.HasPrefix(record.Key, prefix) && o.isWanted(r.URL.Query()) {
				list = append(list, record.Value)
			}
		}
		slices.SortFunc(list, func(a, b json.RawMessage) int {
			return cmp.Or(cmp.Compare(ages[idOf(a)], ages[idOf(b)]), cmp.Compare(idOf(a), idOf(b)))
		})
		return pageOf(r, list)
	}
}

func (p *API) ShowContent(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	text := p.forOwner(e.Client).content(r.PathValue("id"))
	if text == nil {
		return nil, noObject(records.KindFile, r)
	}
	writeLines(e, text)
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
		id, ok := r.PathValue("id"), false
		if err := p.forOwner(e.Client).store.Change(func(c *records.Change) error {
			ok = deleteObject(c, kind, id)
			return nil
		}); err != nil {
			return nil, deleteFault(err)
		}
		if !ok {
			return nil, noObject(kind, r)
		}
		return deletion{id, name, true}, nil
	}
}

func deleteObject(c *records.Change, kind records.Kind, id string) bool {
	ok := c.Delete(kind, id)
	if ok {
		c.Delete(records.KindContent, id)
	}
	return ok
}
