//go:build unix

package chat

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
	"github.com/ossrun/ossrun/runtime/tools/mcp"
	"github.com/ossrun/ossrun/runtime/tools/mcp/zootest"
)

// keeper is a model that calls every tool that it is offered once.
type keeper struct {
	told map[string]string // by function
	last string            // that was called
}

func (k *keeper) turn(r session.Request) ([]session.Event, error) {
	if m := r.Messages[len(r.Messages)-1]; m.Role == harmony.RoleTool {
		k.told[k.last] = m.Text()
	}
	k.last = ""
	for _, f := range r.Functions {
		if _, called := k.told[f.Name]; !called && strings.HasSuffix(f.Name, "_echo") {
			k.last = f.Name
		}
	}
	if k.last == "" {
		return fine("All were called."), nil
	}
	return sessiontest.Call("c1", "functions."+k.last, "{}"), nil
}

// The chat through the zoo: the real program in a terminal and servers with one fault each. The
// screen answers all the time, and each call says what becomes of it. Only those that hang have
// little time.
func TestZooInTheChat(t *testing.T) {
	zoo := zootest.Zoo(t, "process", "http", "sse")
	zootest.Open(t, zoo)
	var list []session.Tool
	for _, group := range zootest.Groups(zoo) {
		servers, notes, err := mcp.Config(zootest.Config(t, group.Animals))
		if err != nil || len(notes) > 0 {
			t.Fatal(notes, err)
		}
		all, _ := mcp.Open(t.Context(), servers, mcp.Options{Interactive: true, Start: group.Start,
			Time: group.Time})
		t.Cleanup(func() { all.Close() })
		tool := all.Tool(false, false, func(string) bool { return true })
		defer tool.Close()
		list = append(list, tool)
		for _, a := range group.Animals {
			hosttest.Until(t, a.Name+" is there", func() bool {
				return !a.Late || strings.Contains(strings.Join(all.Lines(), "\n")+"\n", a.Name+": ")
			})
		}
	}
	k := &keeper{told: map[string]string{}}
	w := open(t, t.Context(), 80, 24, Options{Tools: list,
		Model: &sessiontest.Model{Script: k.turn}})
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
		got := strings.ReplaceAll(k.told[a.Name+"_echo"], "server "+a.Name, "server it")
		if a.Callable() != (got != "") || !strings.Contains(got, a.Says) ||
			!strings.Contains(got, a.Fails) {
			t.Errorf("%s, %s: %.300q, not %q%q", a.Over, a.Fault, got, a.Says, a.Fails)
		}
	}
}
