package remote

import (
	"errors"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

const primes = `{"type":"object","properties":{"primes":{"type":"array",` +
	`"items":{"type":"integer"}}},"required":["primes"],"additionalProperties":false}`

func formed() session.Request {
	return session.Request{Messages: []session.Message{session.User("three primes?")},
		Schema: []byte(primes), Params: sample.Defaults()}
}

// A port that holds to the schema is asked for it; one that does not never answers in silence.
func TestForms(t *testing.T) {
	for answer, want := range map[string]string{
		`{\"primes\": [2, 3, 5]}`: "",
		`{\"primes\": [2, 3.5]}`:  "the answer does not match the schema",
		`Two, three and five.`:    "the answer does not match the schema",
		``:                        "the answer does not match the schema",
	} {
		s := &standIn{models: `{"data":[{"id":"m"}]}`, answers: [][]string{{
			`{"choices":[{"delta":{"content":"` + answer + `"}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "[DONE]"}}}
		m, _ := s.open(t)
		turn, err := m.Start(t.Context(), formed())
		if err != nil {
			t.Fatal(err)
		}
		for _, ok := turn.Next(); ok; _, ok = turn.Next() {
		}
		d := turn.Result().Done
		if want == "" && (d.Finish != session.FinishStop || d.Err != nil) ||
			want != "" && (d.Err == nil || !strings.Contains(d.Err.Error(), want)) {
			t.Errorf("%s: ended with %s, %v", answer, d.Finish, d.Err)
		}
		format, _ := s.bodies[0]["response_format"].(map[string]any)
		asked, _ := format["json_schema"].(map[string]any)
		if format["type"] != "json_schema" || asked["strict"] != true || asked["schema"] == nil {
			t.Errorf("the port was asked for %v", s.bodies[0]["response_format"])
		}
	}
}

func TestRefusedForms(t *testing.T) {
	for _, said := range []string{`response_format is not supported`,
		`{"error":{"message":"Cannot use custom grammar constraints with tools."}}`,
		`{"error":{"message":"invalid","param":"response_format.json_schema"}}`} {
		refused := 0
		s := &standIn{models: `{"data":[{"id":"m"}]}`,
			refuses: func(map[string]any) (int, string) { refused++; return 400, said }}
		m, _ := s.open(t)
		_, err := m.Start(t.Context(), formed())
		if err == nil || !strings.Contains(err.Error(), "refuses the schema") ||
			refused != 1 {
			t.Errorf("%s: asked %d times, %v", said, refused, err)
		}
	}
	s := &standIn{models: `{"data":[{"id":"m"}]}`}
	m, _ := s.open(t)
	r := formed()
	r.Schema = []byte(`{"$ref":"https://example.com/other"}`)
	var wrong *session.RequestError
	if _, err := m.Start(t.Context(), r); !errors.As(err, &wrong) {
		t.Errorf("a schema that cannot be checked: %v", err)
	}
}
