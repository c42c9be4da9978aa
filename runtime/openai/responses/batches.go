// /v1/batches: the requests of a file, answered by the port's own routes below live requests. The
// lines of its files are those of ossrun batch too.
//
// A running batch has a lease as a background response has. Each result is stored before the next
// one: in a journal of records of 16 KB, the last of which is stored again with each result.
//
// What must stay true: each line of a batch that has ended has one line in its output or error
// file, whatever processes ended between; a line with a stored result is not asked again.

package responses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/measure/jsonlines"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/records"
)

// BatchLine is one request of an input.
type BatchLine struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// BatchResult is the line of an output: a response, or why there is none.
type BatchResult struct {
	ID       string         `json:"id"`
	CustomID string         `json:"custom_id"`
	Response *BatchResponse `json:"response"`
	Error    *BatchError    `json:"error"`
}

type BatchResponse struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

type BatchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// batchRoutes answer lines.
var batchRoutes = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}

const messageRoute = "/v1/messages"

var messageID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

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
		case route == messageRoute && !messageID.MatchString(l.CustomID):
			return refuse("invalid_custom_id", fmt.Sprintf("its custom_id must match %s, not %q",
				messageID, fields.Brief(l.CustomID)))
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
	number = 0
	most := 50_000 // OpenAI's limit
	if route == messageRoute {
		most = 100_000 // Anthropic's
	}
	if route != "" && (len(list) == 0 || len(list) > most) {
		return refuse("invalid_file", fmt.Sprintf("it has %d requests, not 1 to %d", len(list),
			most))
	}
	return list, nil
}

// ReadResult reads a line of an output of either API; ok: its request was answered.
func ReadResult(text []byte) (id string, ok bool, err error) {
	var line struct {
		BatchResult
		Result struct{ Type string } // Anthropic's
	}
	if err = json.Unmarshal(text, &line); err == nil && (line.CustomID == "" ||
		line.Response == nil && line.Error == nil && line.Result.Type == "") {
		err = errors.New("it has no custom_id and result")
	}
	return line.CustomID, line.OK() || line.Result.Type == "succeeded", err
}

// NewResult is the result of a line that was answered.
func (l BatchLine) NewResult(r *BatchResponse, e *BatchError) *BatchResult {
	return &BatchResult{answer.NewID("batch_req_"), l.CustomID, r, e}
}

func (r BatchResult) OK() bool { return r.Response != nil && r.Response.StatusCode == 200 }

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
	metadata := request.Metadata(o)
	if _, ok := p.store.Get(records.KindFile, input); !ok {
		o.AddFault(fields.NotFound("input_file_id", "file", input))
	}
	if o.Fault() != nil {
		return nil, o.Fault()
	}
	b := object{"id": answer.NewID("batch_"), "endpoint": endpoint, "input_file_id": input,
		"metadata": metadata}
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
			err = putContent(c, b["input_file_id"].(string), input)
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
		return errors.Join(change(c, b), putObject(c, kind, b))
	})
	return b, err
}

// CancelBatch ends a batch with the lines that are answered.
func (p *API) CancelBatch(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	p = p.forOwner(e.Client)
	if _, f := p.find(records.KindBatch, r); f != nil {
		return nil, f
	}
	id := r.PathValue("id")
	b, err := p.changeObject(records.KindBatch, id, func(_ *records.Change, b object) error {
		if hasEnded(b) {
			return fields.Refusal(http.StatusConflict, "id", "", fmt.Sprint("the batch is ",
				b["status"]))
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

// batchJob is a batch that runs here.
type batchJob struct {
	*API
	*job
	id      string
	working context.Context // ends when no more lines are to be answered

	mu             sync.Mutex      // guards the rest while lines are answered
	batch          object          // as last stored
	finished       map[string]bool // by custom_id
	total, missing int             // lines, and those that had no answer in the end
	lost           bool            // another process has it, or it was deleted
	text           map[bool][]byte // of the output (true) and the error file
	count          map[bool]int    // their lines
	journal        []byte          // the latest of them
	part           int             // number of the journal's record
}

// startBatch runs a batch, unless it runs here already or many do; TakeOver then starts it later.
func (p *API) startBatch(id string) {
	j := &batchJob{API: p, id: id, finished: map[string]bool{}, text: map[bool][]byte{},
		count: map[bool]int{}}
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
	if j.save("", nil) != nil {
		return
	}
	lines, fault := ReadBatch(j.content(j.batch["input_file_id"].(string)),
		j.batch["endpoint"].(string))
	if fault != nil {
		j.finish("failed", fault)
		return
	}
	for text := j.content(j.partID(0)); text != nil; text = j.content(j.partID(j.part)) {
		for line := range bytes.Lines(text) {
			id, ok, _ := ReadResult(line) // our own
			j.add(id, ok, line)
		}
		j.part++
	}
	j.total = len(lines)
	isFinished := func(l BatchLine) bool { return j.finished[l.CustomID] }
	lines = slices.DeleteFunc(lines, isFinished)
	j.answer(slices.Clone(lines))
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
		j.addResult(l.NewResult(nil, &BatchError{"batch_" + status, "the batch is " + status +
			"; this request was not answered"}))
	}
	j.finish(status, nil)
}

// add adds a result, unless its request has one.
func (j *batchJob) add(id string, ok bool, line []byte) {
	if j.finished[id] {
		return
	}
	j.finished[id], j.text[ok] = true, append(j.text[ok], line...)
	j.count[ok]++
}

func (j *batchJob) addResult(r *BatchResult) {
	var form any = r
	if j.batch["endpoint"] == messageRoute {
		form = r.message()
	}
	line, _ := answer.Marshal(form) // the port's JSON
	line = append(line, '\n')
	j.add(r.CustomID, r.OK(), line)
	j.journal = append(j.journal, line...)
}

// maxPart is how many bytes of the journal are stored again with each of its results.
const maxPart = 16 << 10

func (j *batchJob) partID(n int) string { return fmt.Sprintf("%s-%d", j.id, n) }

// save stores the latest results and, unless status is "", the end of the batch with its fault, if
// no other process has the lease.
func (j *batchJob) save(status string, fault object) error {
	j.mu.Lock()
	defer j.mu.Unlock()
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
			b["request_counts"] = object{"total": j.total, "completed": j.count[true],
				"failed": j.count[false] - j.missing}
		}
		if status != "" {
			setBatch(b, "finalizing")
			if setBatch(b, status); fault != nil {
				b["errors"] = object{"object": "list", "data": []any{fault}}
			}
			return j.putFiles(c, b)
		}
		until := time.Now()
		if !j.ends.Load() {
			until = until.Add(j.Silence)
		}
		err := j.renewLease(c, j.id, until)
		if len(j.journal) > 0 {
			err = errors.Join(err, putContent(c, j.partID(j.part), slices.Clone(j.journal)))
		}
		return err
	})
	if j.batch = b; err != nil {
		j.Log.Error("a batch is not stored now", "id", j.id, "error", err)
	} else if len(j.journal) > maxPart {
		j.journal, j.part = nil, j.part+1
	}
	_, j.lost = errors.AsType[*fields.Fault](err)
	expires, _ := b["expires_at"].(float64)
	if j.lost || j.ends.Load() || b["status"] == "cancelling" || float64(now()) > expires {
		j.cancel()
	}
	return err
}

// putFiles replaces the journal by the files of an ended batch.
func (j *batchJob) putFiles(c *records.Change, b object) (err error) {
	c.Delete(records.KindRunning, j.id)
	for n := 0; c.Delete(records.KindContent, j.partID(n)); n++ {
	}
	if b["endpoint"] == messageRoute { // these are no files
		c.Delete(records.KindContent, b["input_file_id"].(string))
		return putContent(c, j.id, slices.Concat(j.text[true], j.text[false]))
	}
	for ok, text := range j.text {
		name := map[bool]string{true: "output", false: "error"}[ok]
		id := "file-" + strings.TrimPrefix(j.id, "batch_") + "-" + name
		_, failed := putFile(c, id, j.id+"_"+name+".jsonl", "batch_output", text)
		err, b[name+"_file_id"] = errors.Join(err, failed), id
	}
	return err
}

// finish stores the end of the batch, as soon as the disk does.
func (j *batchJob) finish(status string, fault object) {
	for !j.ends.Load() {
		err := j.save(status, fault)
		switch {
		case err == nil || j.lost:
			return
		case errors.Is(err, records.ErrTooLarge) || errors.Is(err, records.ErrFull):
			j.text, j.count, j.missing = nil, nil, 0
			status, fault = "failed", object{"code": "output_not_stored", "message": err.Error(),
				"param": nil, "line": nil}
		}
		time.Sleep(time.Second)
	}
}

// answer answers lines until no more are to be answered.
func (j *batchJob) answer(lines []BatchLine) {
	done := make(chan error)
	go func() {
		defer close(done)
		_ = jsonlines.ForEach(j.working, len(lines), j.MaxNumSeqs, func(ctx context.Context,
			i int) func() error {
			r := j.ask(ctx, lines[i])
			if r == nil || ctx.Err() != nil {
				return nil
			}
			return func() error { return j.store(r) } // does not fail
		})
	}()
	for open := true; open; {
		_ = j.save("", nil) // failed: the next one does it
		select {
		case <-time.After(min(time.Second, j.Silence/3)):
		case _, open = <-done:
		}
	}
	_ = j.save("", nil) // tells why a line may have no answer
}

// store waits until a result is stored, so that a full disk stops the batch, or until it ends here.
func (j *batchJob) store(r *BatchResult) error {
	j.mu.Lock()
	j.addResult(r)
	j.mu.Unlock()
	for j.save("", nil) != nil && j.working.Err() == nil {
		time.Sleep(time.Second)
	}
	return nil
}

// ask sends a line through the port, again while that is busy. nil: it is not sent any more.
func (j *batchJob) ask(ctx context.Context, l BatchLine) *BatchResult {
	for ctx.Err() == nil && !j.ends.Load() {
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequestWithContext(context.WithValue(ctx, batchOwner{}, j.API.owner),
			http.MethodPost, l.URL, bytes.NewReader(l.Body)) // ReadBatch has checked it
		r.Header.Set("Content-Type", "application/json")
		j.routes(w, r)
		if w.status != http.StatusTooManyRequests && w.status != http.StatusServiceUnavailable {
			return l.NewResult(&BatchResponse{w.status, w.header.Get("X-Request-Id"),
				w.body.Bytes()}, nil)
		}
		seconds, _ := strconv.Atoi(w.header.Get("Retry-After")) // 0 without
		select {
		case <-time.After(time.Duration(min(max(seconds, 1), 60)) * time.Second):
		case <-ctx.Done():
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
