package answer

import (
	"context"
	"errors"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestMergeKeepsTextAndOrder(t *testing.T) {
	lp := func(s string) []session.TokenLogprob { return []session.TokenLogprob{{Token: s}} }
	got := merge([]arrival{
		{0, session.Reasoning{Text: "a"}}, {0, session.Reasoning{Text: "b"}},
		{1, session.Reasoning{Text: "c"}}, {0, session.Reasoning{Text: "d"}},
		{0, session.Commentary{Text: "e"}}, {0, session.Commentary{Text: "f"}},
		{0, session.CallStart{}}, {0, session.CallArguments{Text: "g"}},
		{0, session.CallArguments{Text: "h"}},
		{0, session.CallArguments{Index: 1, Text: "i"}}, {0, session.CallEnd{}},
		{0, session.Answer{Text: "j", Logprobs: lp("j")}}, {0, session.Answer{Text: "k",
			Logprobs: lp("k")}}, {0, session.Done{}},
	})
	want := []arrival{
		{0, session.Reasoning{Text: "ab"}}, {1, session.Reasoning{Text: "c"}},
		{0, session.Reasoning{Text: "d"}}, {0, session.Commentary{Text: "ef"}},
		{0, session.CallStart{}},
		{0, session.CallArguments{Text: "gh"}}, {0, session.CallArguments{Index: 1, Text: "i"}},
		{0, session.CallEnd{}},
		{0, session.Answer{Text: "jk", Logprobs: append(lp("j"), lp("k")...)}}, {0, session.Done{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// While a batch is being written the model goes on, and what it said meanwhile is one batch.
func TestFollowGathersWhatIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []session.Event
		for range 100 {
			list = append(list, session.Answer{Text: "x"})
		}
		f := &sessiontest.Model{Script: func(session.Request) ([]session.Event,
			error) {
			return append(list, sessiontest.Done(session.FinishStop)), nil
		}}
		turn, err := f.Start(t.Context(), session.Request{})
		hosttest.Check(t, err)
		batches, text := 0, ""
		err = follower{turns: []session.Turn{turn}, cancel: func() {}, silence: time.Minute,
			batch: func(b []arrival) error {
				batches++
				for _, a := range b {
					if e, ok := a.event.(session.Answer); ok {
						text += e.Text
					}
				}
				time.Sleep(20 * time.Millisecond) // until everything has come to rest
				return nil
			}}.run()
		if err != nil || len(text) != 100 || batches > 20 {
			t.Errorf("%d bytes in %d batches, %v", len(text), batches, err)
		}
	})
}

// Progress of a prompt is no answer: heartbeats come during it, and the text after it at once.
func TestProgressDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []session.Event
		at := func(after time.Duration, e session.Event) {
			ready := make(chan struct{})
			time.AfterFunc(after, func() { close(ready) })
			list = append(list, sessiontest.Pause{Until: ready}, e)
		}
		for i := range 10 {
			at(time.Duration(i+1)*700*time.Millisecond, session.Prefill{Done: i + 1, Total: 10})
		}
		at(7010*time.Millisecond, session.Answer{Text: "x"})
		at(9*time.Second, sessiontest.Done(session.FinishStop))
		f := &sessiontest.Model{Script: func(session.Request) ([]session.Event, error) {
			return list, nil
		}}
		turn := hosttest.Must(f.Start(t.Context(), session.Request{}))(t)
		began, beats, text := time.Now(), 0, time.Duration(0)
		crowd := &pace{}
		crowd.open.Store(1000)
		err := follower{turns: []session.Turn{turn}, cancel: func() {}, silence: time.Second,
			pace: crowd, onIdle: func() error { beats++; return nil },
			batch: func(b []arrival) error {
				for _, a := range b {
					if _, ok := a.event.(session.Answer); ok {
						text = time.Since(began)
					}
				}
				return nil
			}}.run()
		if err != nil || beats < 6 || text != 7010*time.Millisecond {
			t.Errorf("%d heartbeats, text after %v, %v", beats, text, err)
		}
	})
}

// A write that fails cancels the turns, and they are followed to their end all the same.
func TestFollowAfterAFailedWrite(t *testing.T) {
	never := make(chan struct{})
	f := &sessiontest.Model{Script: func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "x"}, sessiontest.Pause{Until: never},
			sessiontest.Done(session.FinishStop)}, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var turns []session.Turn
	for range 3 {
		turn := hosttest.Must(f.Start(ctx, session.Request{}))(t)
		turns = append(turns, turn)
	}
	gone := errors.New("broken pipe")
	calls, ends := 0, 0
	err := follower{turns: turns, cancel: cancel, silence: time.Millisecond,
		batch:   func([]arrival) error { calls++; return gone },
		dropped: func(int, session.Done) { ends++ }}.run()
	if !errors.Is(err, gone) || calls != 1 || f.Active() != 0 || ends != len(turns) {
		t.Errorf("%v after %d batches, %d of %d turns have ended, %d still run", err, calls, ends,
			len(turns), f.Active())
	}
}

func TestEventStreamStopsAfterAFailedWrite(t *testing.T) {
	cancelled := 0
	w := &brokenWriter{ResponseRecorder: httptest.NewRecorder()}
	s := StartEvents(w, func() { cancelled++ })
	s.Event("", map[string]int{"a": 1})
	if err := s.Flush(); err == nil || cancelled != 1 {
		t.Fatalf("flush: %v, cancelled %d times", err, cancelled)
	}
	s.Event("", map[string]int{"a": 2})
	if err := s.Flush(); err == nil || w.writes != 1 || cancelled != 1 {
		t.Errorf("after the failure: %v, %d writes, cancelled %d times", err, w.writes, cancelled)
	}
}

type brokenWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (b *brokenWriter) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("broken pipe")
}

// The deadline of a flush does not stay on the connection: a later answer may take longer than
// that.
func TestEventStreamLeavesNoDeadline(t *testing.T) {
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
	s := StartEvents(w, func() {})
	s.Comment("x")
	hosttest.Check(t, s.Flush())
	if len(w.set) != 2 || time.Until(w.set[0]) < WriteTimeout/2 || !w.set[1].IsZero() {
		t.Errorf("deadlines %v", w.set)
	}
}

type deadlineWriter struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlineWriter) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

func TestEventStreamFraming(t *testing.T) {
	w := httptest.NewRecorder()
	s := StartEvents(w, func() {})
	s.Event("name", map[string]string{"text": "a\nb\r\n\u2028<&>"})
	s.Comment("still here")
	s.line("[DONE]")
	hosttest.Check(t, s.Flush())
	want := "event: name\ndata: {\"text\":\"a\\nb\\r\\n\\u2028<&>\"}\n\n: still here\n\ndata: " +
		"[DONE]\n\n"
	if got := w.Body.String(); got != want || !w.Flushed {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
