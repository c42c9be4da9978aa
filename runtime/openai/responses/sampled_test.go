package responses

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// A background response can be taken up by another process through all that is put around its
// turn, but where the turn goes on from a summary, which is in no request.
func TestSampledPassesThroughEveryWrapper(t *testing.T) {
	long := []session.Message{session.User(strings.Repeat("word ", 1200)),
		session.AssistantAnswer("Fine."), session.User("And now?")}
	store := records.NewStore()
	dropped := 0
	kept := tools.NewPool(nil, nil)
	defer kept.Close()
	for name, start := range map[string]func(context.Context, session.Runner, session.Request) (
		session.Turn, error){
		"truncating": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return withTruncation(f, &dropped).Start(ctx, r)
		},
		"compacting": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return withCompaction(f, store, 1<<20).Start(ctx, r)
		},
		"summarised": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return withCompaction(f, store, 1000).Start(ctx, r)
		},
		"first by": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			return tools.WithFirstTurn(f, f.Start).Start(ctx, r)
		},
		"tools": func(ctx context.Context, f session.Runner, r session.Request) (session.Turn,
			error) {
			turn, _, err := kept.Start(ctx, &answer.Answer{}, f, r, nil, tools.Settings{})
			return turn, err
		},
	} {
		f := &sessiontest.Model{Script: sessiontest.Summarises("They said word."), Sampled: []int32{5, 6}}
		turn, err := start(t.Context(), f, session.Request{Messages: long})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		turn.Next()
		want := f.Sampled
		if name == "summarised" {
			want = nil
		}
		if got := turn.Sampled(); !slices.Equal(got, want) {
			t.Errorf("%s: %v can be taken up, not %v", name, got, want)
		}
		for _, ok := turn.Next(); ok; _, ok = turn.Next() {
		}
		if n := len(f.Requests); n != 1 && name != "summarised" {
			t.Errorf("%s started %d turns", name, n)
		}
	}
}
