// What went wrong: in the metrics, and as a client may read it.

package fields_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

func TestFaultsAreAMetric(t *testing.T) {
	var faults harmony.Faults
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "ok"}, session.Done{Finish: session.FinishStop,
			Faults: faults}}, nil
	})
	counted := func() string {
		var lines []string
		for line := range strings.Lines(porttest.Ask(t, "GET", srv.URL+"/metrics", "").Body) {
			if strings.HasPrefix(line, "ossrun:harmony_faults_total") && !strings.HasSuffix(line,
				" 0\n") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	turn := func() { porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`) }
	if turn(); counted() != "" {
		t.Errorf("faults of a turn without any: %s", counted())
	}
	// the faults of a text as the total reader finds them
	ids := token.Get().EncodeSpecial(nil, "<|channel|>nonsense and words<|message|>kept<|return|>",
		nil)
	if _, faults = harmony.ReadAll(ids, harmony.RoleAssistant); faults.Total() == 0 {
		t.Fatal("the reader finds nothing wrong")
	}
	turn()
	turn()
	lines := counted()
	for kind, n := range faults {
		line := fmt.Sprintf("ossrun:harmony_faults_total{kind=%q,model_name=\"gpt-oss-20b\"}",
			harmony.Fault(kind))
		if want := fmt.Sprintf("%s %d\n", line, 2*n); n > 0 && !strings.Contains(lines, want) ||
			n == 0 && strings.Contains(lines, line) {
			t.Errorf("%d faults of kind %s in each of two turns are counted as\n%s", n,
				harmony.Fault(kind), lines)
		}
	}
}

// TestFaultsTellNoPaths: whatever fails, a client does not learn where the server's files lie.
func TestFaultsTellNoPaths(t *testing.T) {
	for _, text := range []string{"gpt-oss-20b is not in /home/me/.cache/huggingface/hub: run it",
		"open /root/x/config.json: permission denied", `C:\Users\me\hub\config.json is damaged`,
		`reading "/srv/models/20b/a.safetensors"`, "/srv/a/b"} {
		inner := errors.New(text)
		for _, err := range []error{inner, fmt.Errorf("%w %q: %w", session.ErrUnknownModel, "20b",
			inner), fmt.Errorf("%w: %w", session.ErrUnavailable, inner),
			&sched.EngineError{Fault: inner}} {
			got := fields.FaultOf(err, "messages").Message
			for _, folder := range []string{"/home", "/root", "Users", "/srv", "models/", ".cache"} {
				if strings.Contains(got, folder) {
					t.Errorf("%v: %s", err, got)
				}
			}
		}
	}
	const plain = "http://127.0.0.1:8000/v1/models answers 3 tokens/s, and/or nothing"
	if got := fields.FaultOf(errors.New(plain), "").Message; got != plain {
		t.Errorf("%q", got)
	}
}
