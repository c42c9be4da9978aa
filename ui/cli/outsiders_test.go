package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// evil is what an outsider would like a terminal to read: a new title, a cleared screen, C1
// controls, an order of its own, a line written over.
const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u0085\u202ekcab\u2066\u200f\u061c\ufeff\x00\b\rover"

// actedOn is the first character of a text that a terminal acts on or reorders by.
func actedOn(text string) string {
	at := strings.IndexFunc(text, func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
			strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067"+
				"\u2068\u2069\ufeff", r)
	})
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("%q in %q", text[at], text)
}

// What servers, programs and files say reaches the terminal as text only, by every verb.
func TestOutsidersWriteTextOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	said, _ := json.Marshal(evil) // a string can be written
	models := fmt.Sprintf(`{"data":[{"id":%s}]}`, said)
	server := func(status int, list, answer string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/v1/models" && list != "" {
				fmt.Fprint(w, list)
				return
			}
			w.WriteHeader(status)
			fmt.Fprint(w, answer)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	refuses := server(500, "", fmt.Sprintf(`{"error":{"message":%s}}`, said))
	plain := server(500, "", evil)
	named := server(500, models, fmt.Sprintf(`{"error":{"message":%s}}`, said))
	folder := t.TempDir()
	script := write(t, filepath.Join(folder, "evil.txt"), evil)
	program := write(t, filepath.Join(folder, "vllm"),
		"#!/bin/sh\ncat "+script+"\ncat "+script+" >&2\nexit 3\n")
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	config, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"x\x1b[2J\u202e": map[string]any{"command": program},
		"far":            map[string]any{"url": plain, "type": "http"}}})
	servers := write(t, filepath.Join(folder, "mcp.json"), string(config))
	for name, c := range map[string]struct {
		verb []string
		want string
	}{
		"an endpoint's error": {[]string{"chat", "--endpoint", refuses, "Hello"}, "owned"},
		"an endpoint's text":  {[]string{"chat", "--endpoint", plain, "Hello"}, "owned"},
		"an endpoint's model": {[]string{"chat", "--endpoint", named, "Hello"}, "owned"},
		"an unknown model":    {[]string{"chat", "--endpoint", named, "--model", evil, "x"}, "owned"},
		"a server that is measured": {[]string{"bench", "serve", "--base-url", named,
			"--num-prompts", "1"}, ""},
		"an agent's server": {[]string{"launch", "codex", "--endpoint", refuses}, ""},
		"an evaluation":     {[]string{"eval", "compat", "--base-url", refuses}, "owned"},
		"vLLM's log": {[]string{"vllm", "serve", "20b", "--hardware", "H100", "--launch",
			"local", "--port", "0"}, "owned"},
		"MCP servers": {[]string{"chat", "--model", "demo", "--device", "cpu", "--alone",
			"--mcp-config", servers, "--max-tokens", "1", "Hello"}, "was skipped"},
		"a flag":           {[]string{"chat", "--" + evil}, ""},
		"a verb":           {[]string{evil}, ""},
		"a file's name":    {[]string{"chat", "--mcp-config", folder + "/" + strings.ReplaceAll(evil, "\x00", ""), "x"}, "owned"},
		"a model's name":   {[]string{"rm", evil}, ""},
		"a model to fetch": {[]string{"pull", evil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, errs := runHere(t.Context(), c.verb...)
			for _, text := range []string{out, errs} {
				if found := actedOn(text); found != "" {
					t.Error(found)
				}
			}
			if all := out + errs; !strings.Contains(all, c.want) || all == "" {
				t.Errorf("no %q in %q", c.want, all)
			}
		})
	}
	var table bytes.Buffer
	w := columns(&table)
	fmt.Fprintf(w, "%s\tB\nA\tB\n", evil)
	if err := w.Flush(); err != nil || actedOn(table.String()) != "" {
		t.Error(err, actedOn(table.String()))
	}
	if found := actedOn(printable(evil, true)); found != "" || printable(evil, false) != evil {
		t.Error(found)
	}
}
