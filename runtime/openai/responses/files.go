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
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/records"
)

// object is a file or batch as clients see it.
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

// ShowObject shows a file or batch.
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

// ListObjects lists the files or batches whose ids begin with prefix, or those with the query's
// purpose.
func (p *API) ListObjects(kind records.Kind, prefix string) answer.Handler {
	return func(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		var list []json.RawMessage
		ages, purpose := map[string]float64{}, r.URL.Query().Get("purpose")
		for _, record := range p.forOwner(e.Client).store.List(kind) {
			var o object
			_ = json.Unmarshal(record.Value, &o) // our own
			ages[record.Key], _ = o["created_at"].(float64)
			if strings.HasPrefix(record.Key, prefix) &&
				(purpose == "" || o["purpose"] == purpose) {
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

func (p *API) DeleteFile(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	id, ok := r.PathValue("id"), false
	if err := p.forOwner(e.Client).store.Change(func(c *records.Change) error {
		ok = deleteFile(c, id)
		return nil
	}); err != nil {
		return nil, deleteFault(err)
	}
	if !ok {
		return nil, noObject(records.KindFile, r)
	}
	return deletion{id, "file", true}, nil
}

func deleteFile(c *records.Change, id string) bool {
	c.Delete(records.KindContent, id)
	return c.Delete(records.KindFile, id)
}
