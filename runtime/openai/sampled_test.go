package openai

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// A background response can be taken up by another process through all that is put around its
// turn, but where the turn goes on from a summary, which is in no request.
func TestSampledPassesThroughEveryWrapper(t *testing.T) {
	long := []session.Message{session.User(strings.Repeat("word ", 1200)),
		session.AssistantAnswer("Fine."), session.User("And now?")}
	store := session.NewStore()
	dropped := 0
	kept := newKeptTools(nil)
	defer kept.close()
	for name, start := range map[string]func(context.Context, session.Runner, session.Request) (
		session.Turn, error){
		"truncating": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return truncating(f, &dropped).Start(ctx, r)
		},
		"compacting": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return compacting(f, store, 1<<20).Start(ctx, r)
		},
		"summarised": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return compacting(f, store, 1000).Start(ctx, r)
		},
		"first by": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return firstBy(f, f.Start).Start(ctx, r)
		},
		"tools": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			turn, _, err := kept.start(ctx, &answer{req: &request{}}, f, r, nil, toolSettings{})
			return turn, err
		},
		"quietly": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			turn, err := f.Start(ctx, r)
			return quietly(turn, nil), err
		},
	} {
		f := &fakeRunner{script: summarises("They said word."), sampled: []int32{5, 6}}
		turn, err := start(t.Context(), f, session.Request{Messages: long})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		turn.Next()
		want := f.sampled
		if name == "summarised" {
			want = nil
		}
		if got := turn.Sampled(); !slices.Equal(got, want) {
			t.Errorf("%s: %v can be taken up, not %v", name, got, want)
		}
		for _, ok := turn.Next(); ok; _, ok = turn.Next() {
		}
		if n := len(f.requests); n != 1 && name != "summarised" {
			t.Errorf("%s started %d turns", name, n)
		}
	}
}
