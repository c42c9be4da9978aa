// /v1/messages/batches: the batches of batches.go in the form of Anthropic's API.
//
// What must stay true: a batch that was begun by one API is not found by the other; each request of
// an ended batch has one result, and its type agrees with the counts.

package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/records"
)

// messageBatch gives the stored object of a batch Anthropic's form; r is for the server's address.
func messageBatch(r *http.Request, value json.RawMessage) object {
	var b struct {
		ID, Status string
		Counts     map[string]int `json:"request_counts"`
		Created    int64          `json:"created_at"`
		Expires    int64          `json:"expires_at"`
		Cancelling int64          `json:"cancelling_at"`
		Finalizing int64          `json:"finalizing_at"`
	}
	_ = json.Unmarshal(value, &b) // our own
	date := func(seconds int64) any {
		if seconds == 0 {
			return nil
		}
		return time.Unix(seconds, 0).UTC()
	}
	n := map[string]int{"processing": 0, "succeeded": b.Counts["completed"],
		"errored": b.Counts["failed"], "canceled": 0, "expired": 0}
	status, missing, results := "in_progress", "processing", any(nil)
	if b.Cancelling > 0 {
		status = "canceling"
	}
	if b.Finalizing > 0 {
		status = "ended"
		results = answer.URL(r, messageRoute+"/batches/"+b.ID+"/results")
		missing = cmp.Or(map[string]string{"cancelled": "canceled", "expired": "expired"}[b.Status],
			"errored")
	}
	n[missing] += b.Counts["total"] - b.Counts["completed"] - b.Counts["failed"]
	return object{"id": b.ID, "type": "message_batch", "processing_status": status,
		"request_counts": n, "created_at": date(b.Created), "expires_at": date(b.Expires),
		"cancel_initiated_at": date(b.Cancelling), "ended_at": date(b.Finalizing),
		"archived_at": nil, "results_url": results}
}

func (p *API) CreateMessageBatch(e *answer.Exchange, r *http.Request, o *fields.Object) (any,
	*fields.Fault) {
	var input bytes.Buffer
	o.Need("requests")
	for _, v := range o.List("requests") {
		m := v.Object()
		text, _ := answer.Marshal(BatchLine{m.Text("custom_id"), "POST", messageRoute,
			m.Get("params").Raw})
		input.Write(append(text, '\n'))
	}
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	lines, fault := ReadBatch(input.Bytes(), messageRoute)
	if fault != nil { // of line 0: of the list
		path := strings.TrimSuffix(fmt.Sprintf("requests[%d]", fault["line"].(int)-1), "[-1]")
		return nil, fields.Invalid(path, "%s: %s", path, fault["message"])
	}
	id := answer.NewID("msgbatch_")
	b := object{"id": id, "endpoint": messageRoute, "input_file_id": "file-" + id + "-input"}
	f := p.forOwner(e.Client).beginBatch(b, len(lines), input.Bytes())
	value, _ := answer.Marshal(b)
	return messageBatch(r, value), f
}

// OfMessages gives do's answer, a batch, Anthropic's form.
func OfMessages(do answer.Handler) answer.Handler {
	return func(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
		body, f := do(e, r)
		value, _ := answer.Marshal(body)
		return messageBatch(r, value), f
	}
}

func (p *API) ListMessageBatches(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	query := r.URL.Query()
	beforeID := query.Get("before_id")
	if query.Set("after", cmp.Or(beforeID, query.Get("after_id"))); beforeID != "" {
		query.Set("order", "asc")
	}
	r.URL.RawQuery = query.Encode()
	body, f := p.ListObjects(records.KindBatch, "msgbatch_")(e, r)
	page, _ := body.(itemPage)
	if beforeID != "" {
		slices.Reverse(page.Data)
		page.FirstID, page.LastID = page.LastID, page.FirstID
	}
	for i, value := range page.Data {
		page.Data[i], _ = answer.Marshal(messageBatch(r, value))
	}
	return page, f
}

// endedBatch is the batch of the path, if its results can be read or deleted.
func (p *API) endedBatch(r *http.Request) (b object, f *fields.Fault) {
	record, f := p.find(records.KindBatch, r)
	_ = json.Unmarshal(record.Value, &b) // our own, or nothing
	if f == nil && !hasEnded(b) {
		f = fields.Invalid("id", "the batch has not ended; cancel it or wait")
	}
	return b, f
}

func (p *API) MessageBatchResults(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	b, f := p.endedBatch(r)
	if f == nil && b["status"] == "failed" {
		f = fields.Failure(http.StatusInsufficientStorage, "", "the results were not stored")
	}
	if f == nil {
		writeLines(e, p.content(r.PathValue("id")))
	}
	return nil, f
}

// message is the result in Anthropic's form.
func (r *BatchResult) message() object {
	result := object{"type": "canceled"}
	switch {
	case r.OK():
		result = object{"type": "succeeded", "message": r.Response.Body}
	case r.Response != nil:
		result = object{"type": "errored", "error": r.Response.Body}
	case r.Error.Code == "batch_expired":
		result["type"] = "expired"
	}
	return object{"custom_id": r.CustomID, "result": result}
}

// DeleteMessageBatch deletes a batch that has ended, with its results.
func (p *API) DeleteMessageBatch(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	b, f := p.forOwner(e.Client).endedBatch(r)
	if f == nil {
		_, f = p.DeleteObject(records.KindBatch, "")(e, r)
	}
	return object{"id": b["id"], "type": "message_batch_deleted"}, f
}
