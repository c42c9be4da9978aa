// Package process is for the programs that this one starts: vLLM, MCP servers, an interpreter.
//
// What must stay true: Ctrl-C of the terminal does not reach them, so that they are stopped in
// order; what they have started themselves ends with them.
package process

import (
	"strings"
	"sync"
)

// StderrTail keeps the end of what a program writes to stderr, for the error that says how it
// ended.
type StderrTail struct {
	mu   sync.Mutex
	kept []byte
}

const mostKept = 2000 // bytes

func (c *StderrTail) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, p...)
	c.kept = c.kept[max(0, len(c.kept)-mostKept):]
	return len(p), nil
}

// String is ": " and what was kept, "" if the program wrote nothing.
func (c *StderrTail) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := strings.TrimSpace(string(c.kept)); text != "" {
		return ": " + strings.ToValidUTF8(text, "\ufffd")
	}
	return ""
}
