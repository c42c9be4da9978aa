// Package process is for the programs that this one starts: vLLM, MCP servers, an interpreter.
//
// What must stay true: Ctrl-C of the terminal does not reach them, so that they are stopped in
// order; their own children end with them.
package process

import (
	"strings"
	"sync"
)

// StderrTail keeps the end of a program's stderr, for the error that says how it ended.
type StderrTail struct {
	mu   sync.Mutex
	tail []byte
}

const mostKept = 2000 // bytes

func (c *StderrTail) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail = append(c.tail, p...)
	c.tail = c.tail[max(0, len(c.tail)-mostKept):]
	return len(p), nil
}

// String is ": " and the kept text, "" if the program wrote nothing.
func (c *StderrTail) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := strings.TrimSpace(string(c.tail)); text != "" {
		return ": " + strings.ToValidUTF8(text, "\ufffd")
	}
	return ""
}
