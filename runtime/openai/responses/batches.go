// /v1/batches: the requests of a file, answered by the port's own routes below live requests.
//
// A running batch has a lease as a background response has. Its goroutine alone stores the answers
// so far, once a second if the store is fast, so a crash costs those of about a second.
//
// What must stay true: each line of a batch that has ended has one line in its output or error
// file, whatever processes ended between; a stored answer is not made again.

package responses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
)

// maxLines is OpenAI's limit of a batch.
const maxLines = 50_000

func setBatch(b object, status string) { b["status"], b[status+"_at"] = status, now() }

func hasEnded(b object) bool {
	return slices.Contains([]any{"completed", "failed", "expired", "cancelled"}, b["status"])
}

func (p *API) CreateBatch(e *answer.Exchange, _ *http.Request, o *fields.Object) (any,
	*fields.Fault) {
	p = p.forOwner(e.Client)
	endpoint, input := o.Text("endpoint"), o.Text("input_file_id")
	if !slices.Contains(batchRoutes, endpoint) {
		o.Get("endpoint").MustBe(strings.Join(batchRoutes, " or "))
	}
	if o.Text("completion_window") != "24h" {
		o.Get("completion_window").MustBe("24h")
	}
	request.CheckMetadata(o, "metadata")
	if _, ok := p.store.Get(records.KindFile, input); !ok {
		o.AddFault(fields.NotFound("input_file_id", "file", input))
	}
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	b := object{"id": answer.NewID("batch_"), "endpoint": endpoint, "input_file_id": input,
		"metadata": metadata(o, "metadata")}
	return b, p.beginBatch(b, 0, nil)
}

// beginBatch stores a new batch, with its input unless that is nil, and starts it.
func (p *API) beginBatch(b object, total int, input []byte) *fields.Fault {
	id := b["id"].(string)
	b["object"], b["status"], b["errors"] = "batch", "validating", nil
	b["completion_window"], b["created_at"], b["expires_at"] = "24h", now(), now()+24*60*60
	b["request_counts"] = object{"total": total, "completed": 0, "failed": 0}
	if err := p.store.Change(func(c *records.Change) (err error) {
		if input != nil {
			_, err = putFile(c, b["input_file_id"].(string), id+".jsonl", "batch", input)
		}
		return errors.Join(err, putObject(c, records.KindBatch, b),
			new(job).renewLease(c, id, time.Now()))
	}); err != nil {
		return ChangeFault(err)
	}
	p.startBatch(id)
	return nil
}

// changeObject changes an object, which may be unknown.
func (p *API) changeObject(kind records.Kind, id string,
	change func(*records.Change, object) error) (b object, err error) {
	err = p.store.Change(func(c *records.Change) error {
		record, ok := c.Get(kind, id)
		if !ok || json.Unmarshal(record.Value, &b) != nil {
			return fields.NotFound("id", string(kind), id)
		}
		if err := change(c, b); err != nil {
			return err
		}
		return putObject(c, kind, b)
	})
	return b, err
}

// CancelBatch ends a batch with the lines that are answered.
func (p *API) CancelBatch(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	id := r.PathValue("id")
	b, err := p.changeObject(records.KindBatch, id, func(_ *records.Change, b object) error {
		if hasEnded(b) {
			return fields.Refusal(http.StatusConflict, "id", "", fmt.Sprint("it is ", b["status"]))
		}
		setBatch(b, "cancelling")
		return nil
	})
	if err != nil {
		return nil, ChangeFault(err)
	}
	if running := p.batches.get(records.OwnedKey(p.owner, id)); running != nil {
		running.cancel()
	}
	return b, nil
}

// BatchLine is one request of an input.
type BatchLine struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// batchRoutes answer lines.
var batchRoutes = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}

// ReadBatch reads the lines of an input, for one route or for any (""). The fault has the code,
// message and line of the first bad one.
func ReadBatch(text []byte, route string) (list []BatchLine, fault map[string]any) {
	ids, number := map[string]bool{}, 0
	refuse := func(code, message string) ([]BatchLine, map[string]any) {
		return nil, object{"code": code, "message": message, "param": nil, "line": number}
	}
	for text := range bytes.Lines(text) {
		var l BatchLine
		var body struct{ Stream, Background any }
		switch number++; {
		case len(bytes.TrimSpace(text)) == 0:
			continue
		case json.Unmarshal(text, &l) != nil:
			return refuse("invalid_json_line", "it is no request in JSON")
		case l.CustomID == "":
			return refuse("missing_required_parameter", "it has no custom_id")
		case ids[l.CustomID]:
			return refuse("duplicate_custom_id", "the custom_id came before: "+l.CustomID)
		case !strings.EqualFold(l.Method, http.MethodPost):
			return refuse("invalid_method", "its method must be POST, not "+l.Method)
		case route != "" && l.URL != route, route == "" && !slices.Contains(batchRoutes, l.URL):
			return refuse("invalid_url", fmt.Sprintf("its url must be one of %s, not %q",
				cmp.Or(route, strings.Join(batchRoutes, ", ")), l.URL))
		case json.Unmarshal(l.Body, &body) != nil || l.Body[0] != '{' || body.Stream == true ||
			body.Background == true:
			return refuse("invalid_request", "its body must be an object, without a stream or "+
				"background")
		}
		ids[l.CustomID], list = true, append(list, l)
	}
	if number = 0; route != "" && (len(list) == 0 || len(list) > maxLines) {
		return refuse("invalid_file", fmt.Sprintf("it has not 1 to %d lines", maxLines))
	}
	return list, nil
}

// batchJob is a batch that runs here.
type batchJob struct {
	*API
	*job
	id              string
	batch           object          // as last stored
	working         context.Context // ends when no more lines are to be answered
	finished        map[string]bool // by custom_id
	total, missing  int             // lines, and those that had no answer in the end
	lost            bool            // another process has it, or it was deleted
	output, refused bytes.Buffer
}

// startBatch runs a batch, unless it runs here already or many do; TakeOver then starts it later.
func (p *API) startBatch(id string) {
	j := &batchJob{API: p, id: id, finished: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	j.working, j.job = ctx, newJob(nil, cancel, answer.NewID(""))
	key := records.OwnedKey(p.owner, id)
	if !p.running.Take(p.owner, 1) {
		return
	}
	if _, runs := p.batches.LoadOrStore(key, j.job); runs {
		p.running.Return(p.owner, 1)
		return
	}
	go func() {
		defer close(j.done)
		defer p.running.Return(p.owner, 1)
		defer p.batches.Delete(key)
		defer cancel()
		j.run()
	}()
}

func (j *batchJob) run() {
	if j.save(func(object) {}) != nil {
		return
	}
	lines, fault := ReadBatch(j.content(j.batch["input_file_id"].(string)),
		j.batch["endpoint"].(string))
	if fault != nil {
		j.finish("failed", fault)
		return
	}
	for name, to := range j.results() {
		to.Write(j.content(j.fileID(name))) // none before the first answer
		for text := range bytes.Lines(to.Bytes()) {
			var l BatchLine
			_ = json.Unmarshal(text, &l) // our own
			j.finished[l.CustomID] = true
		}
	}
	j.total = len(lines)
	isFinished := func(l BatchLine) bool { return j.finished[l.CustomID] }
	lines = slices.DeleteFunc(lines, isFinished)
	j.follow(slices.Clone(lines))
	missing, status := slices.DeleteFunc(lines, isFinished), "completed"
	switch {
	case j.batch["status"] == "cancelling":
		status = "cancelled"
	case len(missing) > 0 && j.ends.Load():
		return // the lease has ended
	case len(missing) > 0:
		status = "expired"
	}
	j.missing = len(missing)
	for _, l := range missing {
		j.add(l, nil, object{"code": "batch_" + status,
			"message": "the batch was " + status + " before this request was answered"})
	}
	j.finish(status, nil)
}

// results are the contents of the files, by name.
func (j *batchJob) results() map[string]*bytes.Buffer {
	return map[string]*bytes.Buffer{"output": &j.output, "error": &j.refused}
}

func (j *batchJob) count(name string) int {
	return bytes.Count(j.results()[name].Bytes(), []byte("\n"))
}

func (j *batchJob) fileID(name string) string {
	return "file-" + strings.TrimPrefix(j.id, "batch_") + "-" + name
}

// save changes the batch and stores the answers so far, if no other process has the lease.
func (j *batchJob) save(change func(b object)) error {
	b, err := j.changeObject(records.KindBatch, j.id, func(c *records.Change, b object) error {
		var current lease
		record, _ := c.Get(records.KindRunning, j.id)
		_ = json.Unmarshal(record.Value, &current) // none: it is free
		if hasEnded(b) || current.Owner != j.job.owner && time.Now().Before(current.Until) {
			return fields.NotFound("id", "batch", j.id)
		}
		if j.total > 0 { // the input was read
			if b["status"] == "validating" {
				setBatch(b, "in_progress")
			}
			b["request_counts"] = object{"total": j.total, "completed": j.count("output"),
				"failed": j.count("error") - j.missing}
		}
		change(b)
		for name, text := range j.results() {
			if text.Len() == 0 {
				continue
			}
			if _, err := putFile(c, j.fileID(name), j.id+"_"+name+".jsonl", "batch_output",
				text.Bytes()); err != nil {
				return err
			}
			if hasEnded(b) {
				b[name+"_file_id"] = j.fileID(name)
			}
		}
		if hasEnded(b) {
			c.Delete(records.KindRunning, j.id)
			return nil
		}
		until := time.Now()
		if !j.ends.Load() {
			until = until.Add(j.Silence)
		}
		return j.renewLease(c, j.id, until)
	})
	if j.batch = b; err != nil {
		j.Log.Error("a batch is not stored now", "id", j.id, "error", err)
	}
	_, j.lost = errors.AsType[*fields.Fault](err)
	expires, _ := b["expires_at"].(float64)
	if j.lost || j.ends.Load() || b["status"] == "cancelling" || float64(now()) > expires {
		j.cancel()
	}
	return err
}

// finish stores the end of the batch, as soon as the disk does.
func (j *batchJob) finish(status string, fault object) {
	for !j.ends.Load() {
		err := j.save(func(b object) {
			setBatch(b, "finalizing")
			setBatch(b, status)
			if fault != nil {
				b["errors"] = object{"object": "list", "data": []any{fault}}
			}
		})
		switch {
		case err == nil || j.lost:
			return
		case errors.Is(err, records.ErrTooLarge) || errors.Is(err, records.ErrFull):
			j.output.Reset()
			j.refused.Reset()
			j.missing = 0
			status, fault = "failed", object{"code": "output_not_stored", "message": err.Error(),
				"param": nil, "line": nil}
		}
		time.Sleep(time.Second)
	}
}

// follow answers lines until no more are to be answered.
func (j *batchJob) follow(lines []BatchLine) {
	results := make(chan func())
	go func() {
		defer close(results)
		var work errgroup.Group
		work.SetLimit(j.MaxNumSeqs)
		for _, l := range lines {
			work.Go(func() error {
				if w := j.ask(l); w != nil && j.working.Err() == nil {
					results <- func() { j.add(l, w, nil) }
				}
				return nil
			})
		}
		_ = work.Wait() // none fails
	}()
	for pause := time.After(0); ; {
		select {
		case add, open := <-results:
			if open {
				add()
				continue
			}
			_ = j.save(func(object) {}) // failed: the next one does it
			return
		case <-pause:
		}
		began := time.Now()
		_ = j.save(func(object) {}) // as above
		pause = time.After(max(time.Second, min(20*time.Since(began), j.Silence/3)))
	}
}

// add adds a result: an answer, or why there is none.
func (j *batchJob) add(l BatchLine, w *recorder, fault any) {
	j.finished[l.CustomID] = true
	r, to := object{"id": answer.NewID("batch_req_"), "custom_id": l.CustomID, "response": nil,
		"error": fault}, &j.refused
	if w != nil {
		r["response"] = object{"status_code": w.status, "body": json.RawMessage(w.body.Bytes()),
			"request_id": w.header.Get("X-Request-Id")}
		if w.status == http.StatusOK {
			to = &j.output
		}
	}
	if j.batch["endpoint"] == messageRoute {
		r = messageResult(l, w, j.batch["status"])
	}
	text, _ := answer.Marshal(r) // the port's JSON
	to.Write(append(text, '\n'))
}

// ask sends a line through the port, again while that is busy. nil: it is not sent any more.
func (j *batchJob) ask(l BatchLine) *recorder {
	for j.working.Err() == nil && !j.ends.Load() {
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequestWithContext(context.WithValue(j.working, batchOwner{}, j.API.owner),
			http.MethodPost, l.URL, bytes.NewReader(l.Body)) // ReadBatch has checked it
		r.Header.Set("Content-Type", "application/json")
		j.routes(w, r)
		if w.status != http.StatusTooManyRequests && w.status != http.StatusServiceUnavailable {
			return w
		}
		seconds, _ := strconv.Atoi(w.header.Get("Retry-After")) // 0 without
		select {
		case <-time.After(time.Duration(min(max(seconds, 1), 60)) * time.Second):
		case <-j.working.Done():
		}
	}
	return nil
}

// recorder is the client of a line.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

type batchOwner struct{}

// OwnerOfBatch is the client whose batch sends a request; ok: one does.
func OwnerOfBatch(ctx context.Context) (owner string, ok bool) {
	owner, ok = ctx.Value(batchOwner{}).(string)
	return owner, ok
}
