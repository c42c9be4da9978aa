package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func configured(t *testing.T, text string) (list []Server, notes []string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Config(path)
}

// A server as each program writes it, next to a good one: how it is used, or the one sentence that
// says why it is not.
func TestEntries(t *testing.T) {
	t.Setenv("KEY", "sesame ${HOME}")
	t.Setenv("EMPTY", "")
	t.Setenv("HOME", "/home/ada")
	secrets := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(secrets, []byte("\ufeff# keys\nexport A=1\nB = \"two words\"\nKEY=file\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, entry, want string }{
		{"Claude Desktop", `{"command":"npx","args":["-y","x"],"env":{"K":"V"}}`,
			`npx ["-y" "x"] map[K:V]`},
		{"Claude Code", `{"type":"http","url":"https://${HOST:-example.com}/mcp",
			"headers":{"Authorization":"Bearer ${KEY}"}}`,
			"http https://example.com/mcp map[Authorization:Bearer sesame ${HOME}]"},
		{"Claude Code, a default for what is empty", `{"command":"${EMPTY:-node}"}`, "node [] map[]"},
		{"Claude Code, a variable that is empty", `{"command":"x","args":["${EMPTY}"]}`,
			`x [""] map[]`},
		{"Claude Code, an unset variable", `{"command":"x","env":{"A":"${NOT_SET}"}}`,
			`"it" was skipped: the variable NOT_SET is not set. Set it or write ` +
				`${NOT_SET:-VALUE}. Check mcp.json.`},
		{"Cursor", `{"command":"x","env":{"A":"${env:KEY}"},"args":["${userHome}/f"]}`,
			`x ["/home/ada/f"] map[A:sesame ${HOME}]`},
		{"Cursor, a default", `{"command":"x","args":["${env:NOT_SET:-a:b}"]}`, `x ["a:b"] map[]`},
		{"Cursor, an unset variable", `{"command":"x","args":["${env:NOT_SET}"]}`,
			"the variable NOT_SET is not set"},
		{"Cursor, envFile", fmt.Sprintf(`{"command":"x","envFile":%q,"env":{"KEY":"own"}}`, secrets),
			`x [] map[A:1 B:two words KEY:own]`},
		{"VS Code, no envFile", `{"command":"x","envFile":"/no/.env"}`,
			`"it" was skipped: "envFile" cannot be read: /no/.env. Check mcp.json.`},
		{"VS Code", `{"type":"stdio","command":"x","env":{"N":1,"B":true,"GONE":null},"args":[80]}`,
			`x ["80"] map[B:true N:1]`},
		{"VS Code, an input", `{"command":"x","env":{"A":"${input:key}"}}`,
			`"it" was skipped: only VS Code asks for ${input:key}. Write ${env:NAME} and set ` +
				`NAME. Check mcp.json.`},
		{"VS Code, a command of it", `{"command":"${config:a.b}"}`, "${config:a.b} is not known"},
		{"Windsurf", `{"serverUrl":"https://example.com/sse"}`, " https://example.com/sse map[]"},
		{"Windsurf, fewer tools", `{"command":"x","disabledTools":["rm"]}`, "x [] map[] not [rm]"},
		{"Gemini", `{"httpUrl":"https://example.com/mcp","timeout":5000,"trust":true}`,
			"http https://example.com/mcp map[]"},
		{"Gemini, a variable", `{"command":"x","env":{"A":"$KEY","B":"pa$word$NOT_SET"}}`,
			"x [] map[A:sesame ${HOME} B:pa$word$NOT_SET]"},
		{"Gemini, fewer tools", `{"command":"x","includeTools":["a"],"excludeTools":["b"]}`,
			"x [] map[] only [a] not [b]"},
		{"Cline", `{"type":"streamableHttp","url":"http://h/mcp","disabled":false,
			"autoApprove":[]}`, "http http://h/mcp map[]"},
		{"Copilot", `{"type":"local","command":"x","tools":["*"]}`, "x [] map[]"},
		{"Copilot, fewer tools", `{"type":"local","command":"x","tools":["a"]}`,
			"x [] map[] only [a]"},
		{"what a shell knows", `{"command":"sh","args":["-c","for i in ${a[@]}; do ${i%.*}; done"]}`,
			`sh ["-c" "for i in ${a[@]}; do ${i%.*}; done"] map[]`},
		{"its own variables", `{"command":"sh","args":["-c","${OWN} $OWN ${KEY}"],
			"env":{"OWN":"${KEY}","KEY":"mine"}}`,
			`sh ["-c" "sesame ${HOME} sesame ${HOME} mine"] map[KEY:mine OWN:sesame ${HOME}]`},
		{"a command line", `{"command":"npx -y a-server"}`, `npx ["-y" "a-server"] map[]`},
		{"an address that is empty", `{"type":"stdio","command":"x","url":"http://h"}`, "x [] map[]"},
		{"both, and a type", `{"type":"sse","command":"x","url":"http://h"}`, "sse http://h map[]"},
		{"switched off", `{"command":"${NOT_SET}","disabled":true}`, ""},
		{"not switched on", `{"command":"${NOT_SET}","enabled":false}`, ""},
		{"nothing", `{}`, `"it" was skipped: a server has either a "command" or a "url". Check`},
		{"both", `{"command":"x","url":"http://h"}`, `either a "command" or a "url"`},
		{"null", `null`, "its entry is not an object"},
		{"a string", `"npx"`, "its entry is not an object"},
		{"arguments in one", `{"command":"x","args":"-y x"}`, `"args" cannot be a JSON string`},
		{"no URL", `{"url":"example"}`, "is not the URL"},
		{"no approval", `{"url":"http://h","require_approval":true}`, `"require_approval" cannot be`},
		{"another approval", `{"url":"http://h","require_approval":"Never"}`, "always or never"},
		{"another type", `{"type":"ftp","url":"http://a/"}`, "stdio, sse or http"},
		{"a URL's sandbox", `{"sandbox":true,"url":"http://a/"}`, "only a program can run in"},
		{"a sandbox's folder", `{"sandbox":true,"command":"a","cwd":"/"}`, `Remove "cwd"`},
	} {
		t.Run(c.program, func(t *testing.T) {
			list, notes, err := configured(t, fmt.Sprintf(`{"mcpServers":{"it":%s,
				"good":{"command":"good"}}}`, c.entry))
			if err != nil || len(list) == 0 || list[0].Name != "good" || list[0].Command != "good" {
				t.Fatalf("%+v, %v", list, err)
			}
			got := strings.Join(notes, "\n")
			for _, s := range list[1:] {
				got += strings.TrimPrefix(fmt.Sprintf("%s %q %v", s.Command, s.Args, s.Env),
					" [] map[]")
				if s.URL != "" {
					got += fmt.Sprintf("%s %s %v", s.Type, s.URL, s.Headers)
				}
				if s.Include != nil {
					got += fmt.Sprintf(" only %v", s.Include)
				}
				if s.Exclude != nil {
					got += fmt.Sprintf(" not %v", s.Exclude)
				}
			}
			told := len(notes) == 1 && c.want != "" && strings.Contains(got, c.want)
			if got != c.want && !told || strings.Contains(got, "\n") || len(list)+len(notes) > 2 {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}

// The file around the entries, as each program writes it.
func TestFiles(t *testing.T) {
	const entry = `{"a":{"command":"x"}}`
	for text, want := range map[string]string{
		`{"mcpServers":` + entry + `}`:                                         "a",
		"\ufeff" + `{"mcpServers":` + entry + `}`:                              "a",
		`{"servers":` + entry + `,"inputs":[]}`:                                "a",
		`{"editor.x":1,"mcp":{"inputs":[],"servers":` + entry + `}}`:           "a",
		`{"servers":{"b":{"url":"http://h"}},"mcpServers":` + entry + `}`:      "a b",
		"{// one\n\"mcpServers\":" + entry + "/* two\n */,}":                   "a",
		`{"mcpServers":{"a":{"command":"x","args":["//no","/*c*/",",]",],},}}`: "a",
		"{\"mcpServers\":{\"a\":{\"url\":\"http://h//x\",// c, }\r\n},\r\n}}":  "a",
		`{"mcpServers":{}}`:                      "",
		`{"mcpServers":{},}//`:                   "",
		`{`:                                      "! is not a list of MCP servers",
		`[]`:                                     "! is not a list of MCP servers",
		`{"mcpServers":[]}`:                      "! is not a list of MCP servers",
		`{"mcpServers":{}} /* never ends`:        "! is not a list of MCP servers",
		`{"mcpServers":{"a":{"command":"x\",}}}`: "! is not a list of MCP servers",
		`{"mcpServers":{,}}`:                     "",
		`{}`:                                     `! has no "mcpServers" and no "servers"`,
	} {
		list, notes, err := configured(t, text)
		var names []string
		for _, s := range list {
			names = append(names, s.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = "!" + err.Error()
		}
		if complains := strings.HasPrefix(want, "!"); len(notes) > 0 || complains != (err != nil) ||
			complains && !strings.Contains(got, want[1:]) || !complains && got != want {
			t.Errorf("%s: %s, %q, not %s", text, got, notes, want)
		}
	}
}

func TestAddress(t *testing.T) {
	if s, err := Address("localhost:8001"); err != nil || s.URL != "http://localhost:8001/sse" {
		t.Error(s, err)
	}
	if _, err := Address("localhost"); err == nil {
		t.Error("no port is an address")
	}
}
