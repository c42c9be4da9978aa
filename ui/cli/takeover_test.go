package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A server that is killed in the middle of a background response loses none of it: the next server
// of the same user writes it to its end, and its events go on with the next number.
func TestKilledServerLosesNoBackgroundResponse(t *testing.T) {
	t.Parallel()
	home, lease := t.TempDir(), []string{testLease + "=1s"}
	s := serveIn(t, home, lease)
	read := s.begun("", `{"input":"How do I serve an OpenAI API?","background":true,"stream":true,`+
		`"ignore_eos":true,"max_output_tokens":600,"seed":3}`)
	s.end(os.Kill)
	seen, id := numbers(t, read, -1)
	s = serveIn(t, home, lease)
	var m struct {
		Status string
		Error  any
	}
	s.eventually("the response ends", func() bool {
		s.get("/v1/responses/"+id, &m)
		return m.Status != "in_progress" && m.Status != "queued"
	})
	if m.Status != "incomplete" || !strings.Contains(s.err.String(),
		"a background response continues") {
		t.Errorf("%+v; %s", m, s.err)
	}
	again, rest := s.send("GET", fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id,
		seen), "")
	last, _ := numbers(t, rest, seen)
	if again.StatusCode != 200 || last < seen+3 ||
		!strings.Contains(rest, "event: response.incomplete") {
		t.Errorf("status %d, %d events after number %d", again.StatusCode, last-seen, seen)
	}
}

// begun asks for a stream of events and reads the first 30 pieces of its text.
func (s *served) begun(key, body string) (events string) {
	s.t.Helper()
	request, err := http.NewRequest("POST", s.url+"/v1/responses", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	r, err := s.web.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	for pieces := 0; pieces < 30; {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the response ended before: %v\n%s%s", err, events, line)
		}
		if events += line; strings.HasPrefix(line, "event: response.reasoning_text.delta") ||
			strings.HasPrefix(line, "event: response.output_text.delta") {
			pieces++
		}
	}
	return events
}

// numbers checks that the events of a stream, which may be cut off, follow on number last, and
// gives the last one's number and the response's id.
func numbers(t *testing.T, stream string, last int) (_ int, id string) {
	t.Helper()
	whole := stream[:strings.LastIndex(stream, "\n\n")+1]
	for line := range strings.Lines(whole) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Number   int `json:"sequence_number"`
			Response struct{ ID string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Number != last+1 {
			t.Fatalf("event %d follows %d (%v)", e.Number, last, err)
		}
		last = e.Number
		if e.Response.ID != "" {
			id = e.Response.ID
		}
	}
	return last, id
}
