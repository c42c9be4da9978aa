package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// getJSON reads one object from a server.
func getJSON(t *testing.T, s *served, path string) (m map[string]any) {
	t.Helper()
	r, err := s.web.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A server that is killed in the middle of a background response loses none of it: the next server
// of the same user writes it to its end, and its events go on with the next number.
func TestKilledServerLosesNoBackgroundResponse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a lease runs out first, which takes 15 s")
	}
	home := t.TempDir()
	s := serveIn(t, home)
	r, err := s.web.Post(s.url+"/v1/responses", "application/json", strings.NewReader(
		`{"input":"How do I serve an OpenAI API?","background":true,"stream":true,`+
			`"ignore_eos":true,"max_output_tokens":1200,"seed":3}`))
	if err != nil {
		t.Fatal(err)
	}
	read := make([]byte, 0, 1<<20)
	for strings.Count(string(read), "event: response.reasoning_text.delta")+
		strings.Count(string(read), "event: response.output_text.delta") < 30 {
		buffer := make([]byte, 4096)
		n, err := r.Body.Read(buffer)
		read = append(read, buffer[:n]...)
		if err != nil {
			t.Fatalf("the response ended before the server was killed: %v\n%s", err, read)
		}
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(r.Body) // what was on its way
	r.Body.Close()
	<-s.done
	s.ended = true
	seen, id := numbers(t, string(read)+string(rest))
	s = serveIn(t, home)
	var m map[string]any
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		m = getJSON(t, s, "/v1/responses/"+id)
		if m["status"] != "in_progress" && m["status"] != "queued" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the response is still %v; %s", m["status"], s.err.String())
		}
	}
	if m["status"] != "incomplete" || !strings.Contains(s.err.String(),
		"a background response continues") {
		t.Errorf("status %v, %v; %s", m["status"], m["error"], s.err.String())
	}
	again, err := s.web.Get(fmt.Sprintf("%s/v1/responses/%s?stream=true&starting_after=%d", s.url, id,
		seen))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	b, err := io.ReadAll(again.Body)
	if again.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("%d %v: %s", again.StatusCode, err, b)
	}
	next := seen + 1
	for line := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e struct {
				Number int `json:"sequence_number"`
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil || e.Number != next {
				t.Fatalf("event %d, want %d (%v)", e.Number, next, err)
			}
			next++
		}
	}
	if next < seen+3 || !strings.Contains(string(b), "event: response.incomplete") {
		t.Errorf("%d events behind number %d", next-seen-1, seen)
	}
}

// numbers checks that the events of a stream, which may be cut off, are consecutive, and gives the
// last number and the response's id.
func numbers(t *testing.T, stream string) (last int, id string) {
	t.Helper()
	last = -1
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
