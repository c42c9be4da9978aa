// Thirty tasks that want a tool: six tools of our own, five tasks for each, in the shape of
// OpenAI's guide to verifying implementations.

package eval

import (
	_ "embed"
	"encoding/json"
	"sync"
)

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Result      json.RawMessage `json:"result"` // of every call
}

type task struct {
	Tool     string         `json:"tool"`
	Text     string         `json:"text"`
	Expected map[string]any `json:"wanted"` // arguments that the text determines
}

//go:embed cases.json
var casesJSON []byte

var cases = sync.OnceValue(func() (c struct {
	Tools []tool `json:"tools"`
	Tasks []task `json:"tasks"`
}) {
	if err := json.Unmarshal(casesJSON, &c); err != nil {
		panic("eval: cases.json: " + err.Error()) // embedded at build time and read in the tests
	}
	return c
})

func Tasks() int { return len(cases().Tasks) }
