package eval

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestMain(m *testing.M) {
	patience.Pause = time.Millisecond
	goleak.VerifyTestMain(m)
}

// scripted is a server whose model answers by rules.
type scripted struct {
	// reply answers a text at an effort
	reply func(text, effort string) string
	// spoil changes what the tools' answers hold
	spoil func(m *client.Message)
	// busy is how many requests get 503 first
	busy int

	mu   sync.Mutex
	seen int
}

// turn is a sessiontest.Script.
func (s *scripted) turn(r session.Request) ([]session.Event, error) {
	first := r.Messages[0].Text()
	m := client.Message{Role: "assistant", Reasoning: "I think."}
	switch {
	case len(r.Functions) == 0:
		m.Content = s.reply(first, r.Effort)
	case r.Messages[len(r.Messages)-1].Role != harmony.RoleTool:
		for _, k := range cases().Tasks {
			if k.Text == first {
				arguments, _ := json.Marshal(k.Expected)
				if k.Tool == "create_event" && k.Expected["title"] == nil {
					arguments = append([]byte(`{"title":"x",`), arguments[1:]...)
				}
				m.Calls = []client.Call{{ID: "call_1", Type: "function",
					Function: client.Function{Name: k.Tool, Arguments: string(arguments)}}}
			}
		}
	default:
		m.Content = "Done."
	}
	if s.spoil != nil {
		s.spoil(&m)
	}
	if m.Role == "refuse" {
		return nil, &session.RequestError{Msg: "no"}
	}
	return eventsOf(&m), nil
}

func eventsOf(m *client.Message) (events []session.Event) {
	done := session.Done{Finish: session.FinishStop,
		Usage: session.Usage{Prompt: 40, Completion: 7, Reasoning: 3}}
	if m.Reasoning != "" {
		events = append(events, session.Reasoning{Text: m.Reasoning})
	}
	for i, c := range m.Calls {
		text := c.Function.Arguments
		events = append(events, session.CallStart{Index: i, ID: c.ID, Name: c.Function.Name},
			session.CallArguments{Index: i, Text: text[:len(text)/2]},
			session.CallArguments{Index: i, Text: text[len(text)/2:]},
			session.CallEnd{Index: i, Arguments: text})
		done.Finish = session.FinishToolCalls
	}
	if m.Content != "" {
		events = append(events, session.Answer{Text: m.Content})
	}
	return append(events, done)
}

// sampler asks the server, whose answers are not checked: they may be spoiled.
func (s *scripted) sampler(t *testing.T, api API) Sampler {
	t.Helper()
	m := &sessiontest.Model{Script: s.turn}
	handler := openai.NewHandler(openai.Options{Options: answer.Options{
		Models: sessiontest.Single(m, m.Now, "m"), Store: records.NewStore()}})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen++
		busy := s.seen <= s.busy
		s.mu.Unlock()
		if busy {
			http.Error(w, `{"error":{"message":"loading"}}`, http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	c := hosttest.Must(client.New(srv.URL, ""))(t)
	t.Cleanup(func() { c.Close(); srv.Close(); handler.Close() })
	return Sampler{Client: c, Model: "m", API: api, MaxTokens: 100}
}
