// What editors accept in their configuration beyond JSON: comments, trailing commas, and variables.
//
// What must stay true: variables in a substituted value are not expanded again, and an unset
// variable is an error, never an empty key.

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// Strings are matched too so that their content is left alone.
const quotedString = `("(?:[^"\\]|\\.)*")`

var (
	comments = regexp.MustCompile(quotedString + `|//[^\n]*|(?s:/\*.*?\*/)`)
	commas   = regexp.MustCompile(quotedString + `|,(\s*[\]}])`)
)

// withoutComments removes comments and trailing commas from JSON.
func withoutComments(text []byte) []byte {
	return commas.ReplaceAll(comments.ReplaceAll(text, []byte("$1 ")), []byte("$1$2"))
}

// variable matches a variable: ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:id}, and Gemini's
// $NAME. Other shell syntax is left to the shell.
var variable = regexp.MustCompile(`\$\{([A-Za-z_]\w*)(:-[^}]*)?\}|\$\{([A-Za-z]+):([^}]+)\}|` +
	`\$([A-Z_][A-Z0-9_]*)`)

// expand expands variables in all strings of an entry. Numbers and bools in its lists of strings
// become strings.
func expand(text json.RawMessage) (json.RawMessage, error) {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // ports keep their spelling
	if err := d.Decode(&members); err != nil {
		return nil, err
	}
	var fault error
	env, _ := members["env"].(map[string]any)
	lookup := os.LookupEnv
	var walk func(v any, strings bool) any
	walk = func(v any, strings bool) any {
		switch v := v.(type) {
		case string:
			return variable.ReplaceAllStringFunc(v, func(p string) string {
				value, err := valueOf(p, lookup)
				if err != nil && fault == nil {
					fault = err
				}
				return value
			})
		case []any:
			for i := range v {
				v[i] = walk(v[i], strings)
			}
		case map[string]any:
			for name, value := range v {
				if v[name] = walk(value, strings); value == nil {
					delete(v, name)
				}
			}
		case json.Number, bool:
			if strings {
				return fmt.Sprint(v)
			}
		}
		return v
	}
	walk(env, true)
	lookup = func(name string) (string, bool) { // the entry's own env comes first, as in a shell
		if value, set := env[name].(string); set {
			return value, true
		}
		return os.LookupEnv(name)
	}
	for name, value := range members {
		if name != "env" || env == nil {
			members[name] = walk(value, name == "args" || name == "headers")
		}
	}
	if fault != nil {
		return nil, fault
	}
	return json.Marshal(members)
}

func valueOf(p string, lookup func(string) (string, bool)) (string, error) {
	parts := variable.FindStringSubmatch(p)
	name, fallback, kind := parts[1]+parts[5], parts[2], parts[3]
	switch {
	case parts[5] != "":
		if value, set := lookup(name); set {
			return value, nil
		}
		return p, nil // it may be meant for a shell
	case name == "userHome":
		return os.UserHomeDir()
	case name == "workspaceFolder":
		return os.Getwd()
	case name == "workspaceFolderBasename":
		folder, err := os.Getwd()
		return filepath.Base(folder), err
	case kind == "env":
		name, fallback, _ = strings.Cut(parts[4], ":-")
		if name != parts[4] {
			fallback = ":-" + fallback
		}
	case kind == "input":
		return "", fmt.Errorf("only VS Code asks for %s. Write ${env:NAME} and set NAME", p)
	case kind != "":
		return "", fmt.Errorf("%s is not known. Write ${env:NAME} and set NAME", p)
	}
	value, set := lookup(name)
	switch {
	case fallback != "" && value == "":
		return fallback[2:], nil
	case !set:
		return "", fmt.Errorf("the variable %s is not set. Set it or write ${%[1]s:-VALUE}", name)
	}
	return value, nil
}

// envFile reads variables from a file of lines NAME=VALUE.
func envFile(path string) (map[string]string, error) {
	text, err := mapping.ReadText(path, mapping.MaxSettings)
	if err != nil {
		return nil, fmt.Errorf(`"envFile" cannot be read: %s`, path)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') &&
			value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		list[strings.TrimSpace(name)] = value
	}
	return list, nil
}
