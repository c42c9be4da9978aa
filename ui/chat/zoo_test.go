//go:build unix

package chat

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// keeper is a model that calls every tool that it is offered once, and waits for those that come
// late by calling the first again.
type keeper struct {
	script
	most int               // tools that come
	told map[string]string // by function
	last string            // that was called
}

func (k *keeper) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	if m := r.Messages[len(r.Messages)-1]; m.Role == harmony.RoleTool {
		k.told[k.last] = m.Text()
	}
	k.last = ""
	for _, f := range r.Functions {
		if _, called := k.told[f.Name]; !called && strings.HasSuffix(f.Name, "_echo") {
			k.last = f.Name
		}
	}
	if k.last == "" && len(k.told) < k.most && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		k.last = r.Functions[0].Name
	}
	events := oneCall("functions."+k.last, "{}")[0]
	if k.last == "" {
		events = turn(answering("All were called."), []session.Event{stopped(9, 2)})
	}
	return &scriptTurn{ctx: ctx, steps: events}, nil
}

// The chat through the whole zoo: the real program in a terminal and real servers with one fault
// each. The screen answers all the time, and each call says what becomes of it.
func TestZooInTheChat(t *testing.T) {
	zoo := zootest.Open(t, "../../runtime/tools/mcp/testdata/zoo.py", zootest.Zoo)
	list, notes, err := mcp.Config(zootest.Config(t, zoo))
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	allowed := func(context.Context, string, string, string) (bool, error) { return true, nil }
	all, _ := mcp.Open(t.Context(), list, mcp.Options{Approve: allowed, Start: 3 * time.Second,
		Time: 3 * time.Second})
	t.Cleanup(func() { all.Close() })
	tool := all.Tool(false, false, func(string) bool { return true })
	defer tool.Close()
	k := &keeper{told: map[string]string{}}
	for _, a := range zoo {
		if a.Says != "" || a.Fails != "" {
			k.most++
		}
	}
	w := open(t, t.Context(), 80, 24, Options{Tools: []session.Tool{tool}, Model: k})
	w.until("Ask something")
	w.typing("call them\r")
	w.until("→ ")
	w.answers("uring")
	w.until("All were called.")
	w.answers("fter")
	w.typing("\x15/quit\r")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	for _, a := range zoo {
		if a.Says == "" && a.Fails == "" {
			continue
		}
		want := strings.Replace(a.Fails, "within 5s", "within 3s", 1)
		got := strings.ReplaceAll(k.told[a.Name+"_echo"], "server "+a.Name, "server it")
		if !strings.Contains(got, a.Says) || !strings.Contains(got, want) || got == "" {
			t.Errorf("%s, %s: %.300q, not %q%q", a.Over, a.Fault, got, a.Says, want)
		}
	}
	if len(k.told) != k.most {
		t.Errorf("%d tools were called, not %d: %q", len(k.told), k.most,
			slices.Sorted(maps.Keys(k.told)))
	}
}
