package responses_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// heldTurn stops after some tokens until it may go on.
type heldTurn struct {
	session.Turn
	ctx  context.Context
	goOn <-chan struct{}
}

const heldAt, mostTokens = 30, 60

func (h heldTurn) Next() (session.Event, bool) {
	if len(h.Sampled()) > heldAt {
		select {
		case <-h.goOn:
		case <-h.ctx.Done():
		}
	}
	return h.Turn.Next()
}

// demoServers opens servers over the demo model, each with a port like a separate process. With a
// store they share it. Their turns stop after heldAt tokens until goOn is closed.
func demoServers(t *testing.T, stores ...records.Store) func(silence time.Duration,
	goOn <-chan struct{}) (*httptest.Server, *porttest.Checked) {
	t.Helper()
	found := hosttest.Must(checkpoint.Resolve("demo"))(t)
	dev := hosttest.Must(cpu.New(2))(t)
	m := hosttest.Must(serve.LoadOn(found, engine.On(dev), engine.Settings{MaxModelLen: 4096}))(t)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(silence time.Duration, goOn <-chan struct{}) (*httptest.Server, *porttest.Checked) {
		salted := session.WithStart(m, func(ctx context.Context, r session.Request) (session.Turn,
			error) {
			if r.Salt != "\na" {
				t.Errorf("a turn has the salt %q", r.Salt)
			}
			turn, err := m.Start(ctx, r)
			return heldTurn{turn, ctx, goOn}, err
		})
		h := porttest.NewChecked(t,
			openai.Options{Options: answer.Options{Models: sessiontest.Single(salted, m.Stats, "demo"),
				Silence: silence, Store: append(stores, nil)[0]}})
		t.Cleanup(h.Close)
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv, h
	}
}

// begin asks for a response in the background, and returns it once some tokens are in its record.
func begin(t *testing.T, srv *httptest.Server, h *porttest.Checked, body string) records.Record {
	t.Helper()
	id := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", fmt.Sprintf(`{"background":true,`+
		`"seed":7,"cache_salt":"a","max_output_tokens":%d,"ignore_eos":true,%s}`, mostTokens,
		body)).Body)["id"].(string)
	return porttest.Eventually(t, func() (records.Record, bool) {
		r, ok := h.Store.Get(records.KindResponse, id)
		var s responses.StoredResponse
		return r, ok && json.Unmarshal(r.Value, &s) == nil && responses.RunningOf(&s) &&
			(len(s.Tokens) > 20 || responses.LastOf(s.Log) > 20)
	})
}

// abandoned is what a process that was killed leaves of a response: its record as it is once some
// tokens are in it, and the response as it came out in the end.
func abandoned(t *testing.T, open func(time.Duration, <-chan struct{}) (*httptest.Server,
	*porttest.Checked), body string) (left records.Record, whole map[string]any) {
	t.Helper()
	goOn := make(chan struct{})
	srv, h := open(15*time.Second, goOn)
	left = begin(t, srv, h, body)
	close(goOn)
	return left, porttest.Ended(t, srv, left.Key)
}

// takeOver lets a port take over what others have left until the test or what it returns ends it.
func takeOver(t *testing.T, h *porttest.Checked) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { h.TakeOver(ctx) })
	end = func() { cancel(); all.Wait() }
	t.Cleanup(end)
	return end
}

var free = closed()

// inherit puts a record into a port's store as what a process that has ended has left.
func inherit(t *testing.T, h *porttest.Checked, left records.Record) {
	t.Helper()
	var s responses.StoredResponse
	hosttest.Check(t, json.Unmarshal(left.Value, &s))
	s.Until = time.Now().Add(-time.Second)
	hosttest.Check(t, responses.PutResponse(h.Store, left.Key, s))
	value, _ := answer.Marshal(responses.Lease{"another", s.Until})
	h.Store.Put(records.Record{Kind: records.KindRunning, Key: left.Key, Value: value})
}

// A response of an ended process is resumed: with the same ids, the same text, and consecutive
// numbers of events.
func TestBackgroundIsTakenOver(t *testing.T) {
	open := demoServers(t)
	for _, body := range []string{
		`"input":"How do I serve an OpenAI API?"`, `"input":"What is the weather in Paris?",` +
			`"tools":[` + porttest.WeatherFunction + `],"instructions":"Call get_weather."`,
	} {
		left, whole := abandoned(t, open, body)
		srv, second := open(100*time.Millisecond, free)
		inherit(t, second, left)
		takeOver(t, second) // twice at once: one takes it over
		takeOver(t, second)
		path := srv.URL + "/v1/responses/" + left.Key
		stream := porttest.Eventually(t, func() (string, bool) { // once it runs
			r := porttest.Ask(t, "GET", path+"?stream=true", "")
			return r.Body, r.Status == 200
		})
		again := porttest.Ended(t, srv, left.Key)
		list := porttest.Events(t, stream)
		porttest.ConformResponses(t, list)
		for _, key := range []string{"created_at", "completed_at", "usage"} {
			delete(whole, key)
			delete(again, key)
		}
		if !reflect.DeepEqual(whole, again) {
			t.Errorf("%s\nwithout the break %v\nafter it          %v", body, whole, again)
		}
		last := porttest.At(list[len(list)-1].Json, "response").(map[string]any)
		if porttest.At(last, "id") != left.Key || !strings.HasPrefix(list[len(list)-1].Name, "response.") {
			t.Errorf("the stream ends in %v", last)
		}
		if n := len(second.Store.List(records.KindRunning)); n != 0 {
			t.Errorf("%d leases are left", n)
		}
		// what a client reads from the middle on goes on with the next number
		half := len(list) / 2
		rest := porttest.Events(t, porttest.Ask(t, "GET", fmt.Sprint(path, "?stream=true&starting_after=", half),
			"").Body)
		if len(rest) != len(list)-half-1 {
			t.Errorf("%d events behind number %d of %d", len(rest), half, len(list))
		}
	}
}

// What cannot be taken up ends as failed, not never.
func TestLostBackgroundFails(t *testing.T) {
	f := &sessiontest.Model{}
	h := porttest.NewChecked(t, openai.Options{Options: answer.Options{Models: sessiontest.Single(f,
		f.Now),
		Silence: 50 * time.Millisecond}})
	defer h.Close()
	s := responses.StoredResponse{Body: json.RawMessage(`{"id":"resp_1","object":"response","background":true,` +
		`"status":"in_progress","output":[]}`), Log: responses.NewEventLog(),
		Until: time.Now().Add(-time.Second)}
	hosttest.Check(t, responses.PutResponse(h.Store, "resp_1", s))
	value, _ := answer.Marshal(responses.Lease{"another", s.Until})
	h.Store.Put(records.Record{Kind: records.KindRunning, Key: "resp_1", Value: value})
	defer takeOver(t, h)()
	porttest.Eventually(t, func() (any, bool) {
		r, _ := h.Store.Get(records.KindResponse, "resp_1")
		return string(r.Value), strings.Contains(string(r.Value), `"failed"`)
	})
}

// What a key's client has left is resumed with its share, budget and salt; what the client of a
// removed key has left is not.
func TestTakenOverForItsKey(t *testing.T) {
	store, path := records.NewStore(), filepath.Join(t.TempDir(), "keys.json")
	k, _ := keys.New("alice")
	k.Tokens = 1000
	hosttest.Check(t, keys.Change(path, func([]keys.Key) ([]keys.Key, error) {
		return []keys.Key{k}, nil
	}))
	f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
	o := openai.Options{Options: answer.Options{Models: sessiontest.Single(f, f.Now), Store: store,
		Silence: 50 * time.Millisecond}}
	o.Keys = hosttest.Must(keys.Open(path, store, func(line string) { t.Error(line) }))(t)
	h := porttest.NewChecked(t, o)
	defer h.Close()
	log := responses.NewEventLog()
	hosttest.Check(t, json.Unmarshal([]byte("[]"), log))
	for _, owner := range []string{"0123456789abcdef", k.ID} {
		s := responses.StoredResponse{Body: json.RawMessage(`{"id":"resp_1","object":"response",` +
			`"background":true,"status":"in_progress","output":[]}`), Log: log,
			Until: time.Now().Add(-time.Second), Request: json.RawMessage(`{"input":"x"}`),
			Tokens: []int32{1, 2, 3}, Salt: owner + "\nsalt"}
		owned := records.Owned(store, owner)
		hosttest.Check(t, responses.PutResponse(owned, "resp_1", s))
		value, _ := answer.Marshal(responses.Lease{"another", s.Until})
		owned.Put(records.Record{Kind: records.KindRunning, Key: "resp_1", Value: value})
	}
	defer takeOver(t, h)()
	porttest.Eventually(t, func() (any, bool) { // each look takes over all that it may
		r, _ := records.Owned(store, k.ID).Get(records.KindResponse, "resp_1")
		return string(r.Value), strings.Contains(string(r.Value), `"completed"`)
	})
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.Shares) != 1 || f.Shares[0] == nil || f.Shares[0].Client != k.ID ||
		f.Requests[0].Budget == nil || f.Requests[0].Salt != k.ID+"\nsalt" {
		t.Errorf("%d turns: shares %v, %+v", len(f.Shares), f.Shares, f.Requests)
	}
}

// A response with logprobs fails, since those of the first tokens are lost; its events so far
// remain, and its stream ends properly.
func TestBackgroundWithLogprobsFails(t *testing.T) {
	open := demoServers(t)
	srv, first := open(15*time.Second, nil)
	left := begin(t, srv, first, `"input":"How do I serve an OpenAI API?","top_logprobs":2,`+
		`"include":["message.output_text.logprobs"]`)
	id := left.Key
	if r := porttest.Ask(t, "POST", srv.URL+"/v1/responses/"+id+"/cancel", ""); r.Status != 200 {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
	next, second := open(100*time.Millisecond, free)
	inherit(t, second, left)
	takeOver(t, second)
	m := porttest.Ended(t, next, id)
	if message, _ := porttest.At(m, "error", "message").(string); m["status"] != "failed" ||
		porttest.At(m, "error", "code") != "server_error" || !strings.Contains(message, "send the request") {
		t.Errorf("%v", m)
	}
	list := porttest.Eventually(t, func() ([]porttest.Event, bool) {
		r := porttest.Ask(t, "GET", next.URL+"/v1/responses/"+id+"?stream=true", "")
		return porttest.Events(t, r.Body), r.Status == 200
	})
	last := list[len(list)-1]
	if last.Name != "response.failed" || last.Json["sequence_number"] != float64(len(list)-1) ||
		len(list) < 20 {
		t.Errorf("%d events, the last is %s", len(list), last.Data)
	}
}

// A server that is stopped leaves its background responses as one that was killed does: the next
// one ends them as they would have ended here.
func TestAnEndingServerGivesBackgroundResponsesUp(t *testing.T) {
	store := hosttest.Must(records.Open(records.Options{
		File: filepath.Join(t.TempDir(), "kept.db"), TTL: time.Hour}))(t)
	t.Cleanup(func() { store.Close() })
	open := demoServers(t, store)
	const body = `"input":"How do I serve an OpenAI API?"`
	_, whole := abandoned(t, open, body)
	for range 2 {
		srv, first := open(time.Second, nil)
		id := begin(t, srv, first, body).Key
		first.GiveUp()
		first.Await(t.Context())
		left, ok := responses.GetResponse(store, id)
		if !ok || !responses.RunningOf(&left) || left.Until.After(time.Now()) ||
			len(left.Tokens) >= mostTokens {
			t.Fatalf("it is left as %s", left.Body)
		}
		next, second := open(100*time.Millisecond, free)
		end := takeOver(t, second)
		again := porttest.Ended(t, next, id)
		end()
		for _, key := range []string{"output", "status"} {
			a, _ := json.Marshal(whole[key])
			b, _ := json.Marshal(again[key])
			if withoutIDs(a) != withoutIDs(b) {
				t.Errorf("%s\nwithout the break %s\nafter it          %s", key, a, b)
			}
		}
	}
}

func withoutIDs(b []byte) string {
	return regexp.MustCompile(`"id":"[^"]*"`).ReplaceAllString(string(b), "")
}

// One whose turn the ending server cuts is left as it was stored.
func TestACutBackgroundResponseIsNotFailed(t *testing.T) {
	store := hosttest.Must(records.Open(records.Options{
		File: filepath.Join(t.TempDir(), "kept.db"), TTL: time.Hour}))(t)
	t.Cleanup(func() { store.Close() })
	cut := make(chan struct{})
	f := &sessiontest.Model{Script: func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "Hel"}, sessiontest.Pause{Until: cut},
			sessiontest.Done(session.FinishCancelled)}, nil
	}}
	h := porttest.NewChecked(t, openai.Options{Options: answer.Options{
		Models: sessiontest.Single(f, f.Now), Store: store}})
	t.Cleanup(h.Close)
	srv := httptest.NewServer(h)
	defer srv.Close()
	id := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
		`{"input":"x","background":true}`).Body)["id"].(string)
	h.GiveUp()
	close(cut)
	h.Await(t.Context())
	if s, ok := responses.GetResponse(store, id); !ok || !responses.RunningOf(&s) {
		t.Errorf("it is left as %s", s.Body)
	}
}
