package session

import (
	"context"
	"slices"
	"testing"
)

// from is a runner whose turns all are t.
func from(t Turn) Runner {
	return WithStart(nil, func(context.Context, Request) (Turn, error) { return t, nil })
}

// A turn can be resumed through every wrapper, and its result is read through it. Tokens sampled
// for a different prompt than the request's cannot be used.
func TestWrappersPassThrough(t *testing.T) {
	sampled := []int32{5, 6}
	for name, c := range map[string]struct {
		wrap func(t Turn) (Turn, error)
		want []int32
	}{
		"nothing": {func(t Turn) (Turn, error) { return Wrap(t, Wrapper{}), nil }, sampled},
		"each": {func(t Turn) (Turn, error) {
			return MapEvents(t, func(e Event) (Event, bool) { return e, true }), nil
		}, sampled},
		"end": {func(t Turn) (Turn, error) { return OnDone(t, func(Done) {}), nil }, sampled},
		"replaced": {func(t Turn) (Turn, error) {
			r := Wrap(nil, Wrapper{Read: func(Turn) (Event, bool, Turn) {
				return Commentary{"elsewhere"}, true, t
			}})
			if got := r.Sampled(); got != nil {
				return nil, context.Canceled
			}
			r.Next()
			return r, nil
		}, sampled},
		"runner": {func(t Turn) (Turn, error) {
			return from(t).Start(context.Background(), Request{})
		}, sampled},
		"no tools": {func(t Turn) (Turn, error) {
			return StartWithTools(context.Background(), from(t), Request{}, nil, ToolOptions{})
		}, sampled},
		"tools": {func(t Turn) (Turn, error) {
			return StartWithTools(context.Background(), from(t), Request{}, []Tool{&adder{}},
				ToolOptions{})
		}, nil},
		"another prompt": {func(t Turn) (Turn, error) {
			return Wrap(t, Wrapper{OtherPrompt: true}), nil
		}, nil},
	} {
		inner := &turn{result: Result{Answer: "so far"}}
		inner.resumable.Store(&sampled)
		got, err := c.wrap(inner)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(got.Sampled(), c.want) || got.Result().Answer != "so far" {
			t.Errorf("%s: sampled %v of %q", name, got.Sampled(), got.Result().Answer)
		}
	}
}

func TestEachChangesAndHides(t *testing.T) {
	turn := MapEvents(Finished(Result{}, Reasoning{"r"}, Answer{Text: "a"},
		Done{Finish: FinishStop}), func(e Event) (Event, bool) {
		if a, ok := e.(Answer); ok {
			return Answer{Text: a.Text + "b"}, true
		}
		_, hidden := e.(Reasoning)
		return e, !hidden
	})
	first, _ := turn.Next()
	second, _ := turn.Next()
	if e, ok := turn.Next(); first.(Answer).Text != "ab" ||
		second != (Done{Finish: FinishStop}) || ok {
		t.Errorf("%v, %v, %v", first, second, e)
	}
}

func TestAtEndIsCalledOnce(t *testing.T) {
	for _, c := range []struct {
		events []Event
		want   Finish
	}{{[]Event{Answer{Text: "a"}, Done{Finish: FinishLength}}, FinishLength},
		{[]Event{Answer{Text: "a"}}, FinishError}} { // it has no Done
		var ends []Finish
		turn := OnDone(Finished(Result{}, c.events...), func(d Done) {
			ends = append(ends, d.Finish)
		})
		turn.Next()
		if len(ends) > 0 {
			t.Error("it ended with its first word")
		}
		for range 3 {
			turn.Next()
		}
		if !slices.Equal(ends, []Finish{c.want}) {
			t.Errorf("%v ends in %v", c.events, ends)
		}
	}
}
