// ossrun launch: a coding agent that uses a local server.
//
// Each agent gets the address, model and context length by arguments, variables and temporary
// files: none of the agent's own files is changed. Without a running server, one is started for the
// agent's lifetime. What must stay true: arguments after the agent's name are passed on unchanged;
// the agent's exit code is ours.

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
)

type agent struct {
	name, install string
	// settings returns the program's arguments and variables for a server.
	settings func(s agentPort) (arguments, environment []string, err error)
}

type agentPort struct {
	URL     string // without /v1
	Key     string // never empty: agents ask the person otherwise
	Model   string
	Context int // tokens; 0: unknown
}

var agents = []agent{
	{"codex", "@openai/codex", codexSettings},
	{"claude", "@anthropic-ai/claude-code", claudeSettings},
	{"opencode", "opencode-ai", opencodeSettings},
}

// claudeSettings set one model for all uses, sub-agents too. The agent assumes 1,000,000 tokens for
// an unknown model and would never compact. Its attribution header, a line before every prompt, and
// its other traffic are turned off.
func claudeSettings(s agentPort) (arguments, environment []string, err error) {
	environment = []string{"ANTHROPIC_BASE_URL=" + s.URL, "ANTHROPIC_AUTH_TOKEN=" + s.Key,
		"ANTHROPIC_API_KEY=", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_ATTRIBUTION_HEADER=0"}
	if s.Context > 0 {
		environment = append(environment,
			fmt.Sprint("CLAUDE_CODE_MAX_CONTEXT_TOKENS=", s.Context))
	}
	for _, use := range []string{"ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
		"ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
		"ANTHROPIC_DEFAULT_FABLE_MODEL", "ANTHROPIC_SMALL_FAST_MODEL",
		"CLAUDE_CODE_SUBAGENT_MODEL"} {
		environment = append(environment, use+"="+s.Model)
	}
	return nil, environment, nil
}

// opencodeSettings are a separate config, which it merges with the user's.
func opencodeSettings(s agentPort) (arguments, environment []string, err error) {
	model := map[string]any{"name": s.Model, "reasoning": true, "tool_call": true}
	if s.Context > 0 {
		model["limit"] = map[string]int{"context": s.Context, "output": s.Context / 4}
	}
	config, err := json.Marshal(map[string]any{
		"provider": map[string]any{"ossrun": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "ossrun",
			"options": map[string]string{"baseURL": s.URL + "/v1", "apiKey": s.Key},
			"models":  map[string]any{s.Model: model}}},
		"model": "ossrun/" + s.Model, "small_model": "ossrun/" + s.Model,
	})
	return nil, []string{"OPENCODE_CONFIG_CONTENT=" + string(config)}, err
}

func launchCommand(t Terminal) *cli.Command {
	names := mapSlice(agents, func(a agent) string { return a.name })
	var base, model string
	var port portFlags
	return &cli.Command{
		Name:      "launch",
		Usage:     "start a coding agent: " + strings.Join(names, ", "),
		ArgsUsage: "[flags] AGENT [the agent's own arguments]",
		Description: "Example: ossrun launch codex\n" +
			"         ossrun launch claude -p \"What does main.go do?\"\n" +
			"         ossrun launch --print opencode\n\n" +
			"Connects the agent to the running server, or starts one and stops it when the " +
			"agent exits. The agent's own settings are not changed. Arguments after AGENT go " +
			"to the agent.",
		Flags: flagTable(
			serverFlag(&base, "url", "the server at `URL`, as http://127.0.0.1:8000 (default: the "+
				"running one)"),
			textFlag(&model, "model", "`M` is one of the server's models (default: its first)"),
			inputFlag(&port.apiKeyFile, "api-key-file", "the server's key is in `FILE` (default: "+
				"OSSRUN_API_KEY)"),
			boolFlag("print", "print what would be started, for a shell"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return fail(exitUsage, "launch needs an agent: %s", oneOfWords(names))
			}
			i := slices.Index(names, c.Args().First())
			if i < 0 {
				return fail(exitUsage, "unknown agent %q. Use %s", c.Args().First(),
					oneOfWords(names))
			}
			key, err := port.key()
			if err != nil {
				return err
			}
			return launch(c, t, agents[i], base, model, key)
		},
	}
}

func launch(c *cli.Context, t Terminal, a agent, base, model, key string) error {
	program, missing := exec.LookPath(a.name)
	show := c.Bool("print")
	if missing != nil && !show {
		return fail(exitFailure, "%s is not installed. Run npm install -g %s", a.name, a.install)
	}
	needed := local.ServerFinder{Caller: a.name, Model: model, MayStart: !show, Report: notify(t)}
	base, stop, err := needed.Find(c.Context, base)
	if err != nil {
		return err
	}
	defer stop()
	s, err := probe(c.Context, base, model, key)
	if err != nil {
		return err
	}
	arguments, environment, err := a.settings(s)
	if err != nil {
		return err
	}
	arguments = append(arguments, c.Args().Tail()...)
	if show {
		var words []string
		for _, v := range environment {
			name, value, _ := strings.Cut(v, "=")
			words = append(words, name+"="+shellWord(value))
		}
		words = append(words, a.name)
		words = append(words, mapSlice(arguments, shellWord)...)
		fmt.Fprintln(t.Out, strings.Join(words, " "))
		return nil
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.In, t.Out, t.Err
	err = cmd.Run() // Ctrl-C is for the agent, which has the terminal
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return &exitError{failed.ExitCode(), ""}
	}
	return err
}

// probe lists the models of the server at base and chooses the named or first one.
func probe(ctx context.Context, base, model, key string) (agentPort, error) {
	base, err := clientAddress(base)
	if err != nil {
		return agentPort{}, err
	}
	c, err := client.New(base, key)
	if err != nil {
		return agentPort{}, fail(exitUsage, "%s", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	list, err := c.Models(ctx)
	refused, no := errors.AsType[*client.Error](err)
	switch {
	case no && refused.Status == http.StatusUnauthorized:
		return agentPort{}, fail(exitFailure, "the server at %s wants its key: set "+
			"OSSRUN_API_KEY or give --api-key-file", base)
	case no:
		return agentPort{}, refused
	case err != nil:
		return agentPort{}, fail(exitFailure, "the server at %s: %s", base, rootCause(err))
	case len(list) == 0:
		return agentPort{}, fail(exitFailure, "the server at %s has no list of models", base)
	}
	var names []string
	for _, m := range list {
		if model == "" || strings.EqualFold(m.ID, model) {
			return agentPort{base, cmp.Or(key, "none"), m.ID,
				cmp.Or(m.Window, m.Max)}, nil
		}
		names = append(names, m.ID)
	}
	return agentPort{}, fail(exitModel, "unknown model %q. The server has %s", model,
		strings.Join(names, ", "))
}

// clientAddress is a server's address for clients on this machine.
func clientAddress(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fail(exitUsage, "agents need a server at an address, not %q: "+
			"ossrun serve --port 8000", base)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String(), nil
}
