// ossrun launch: a coding agent that talks to the server of this machine.
//
// Each agent is told where the port is, which model it serves and how long its context is, by
// arguments and variables of that one run: no file of the agent's is changed. Where no server runs,
// one is started for as long as the agent runs. What must stay true: what stands behind the agent's
// name is the agent's own and is passed on as it is; the agent's exit code is ours.

package cli

import (
	"bytes"
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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/join"
	"github.com/ossrun/ossrun/runtime/process"
)

// agent is a program that can be launched.
type agent struct {
	name, install string
	// settings are what the program is started with for a server.
	settings func(s agentPort) (arguments, environment []string)
}

// agentPort is what an agent must know of a server.
type agentPort struct {
	URL     string // without /v1
	Key     string // never empty: agents ask for one where they have none
	Model   string
	Context int // tokens
}

var agents = []agent{
	{"codex", "@openai/codex", codexSettings},
	{"claude", "@anthropic-ai/claude-code", claudeSettings},
	{"opencode", "opencode-ai", opencodeSettings},
}

// codexSettings are overrides of its config.toml.
func codexSettings(s agentPort) (arguments, environment []string) {
	provider := fmt.Sprintf("{name=\"ossrun\",base_url=%q,wire_api=\"responses\","+
		"env_key=\"OSSRUN_API_KEY\"}", s.URL+"/v1")
	for _, setting := range []string{"model_provider=\"ossrun\"",
		"model_providers.ossrun=" + provider, fmt.Sprintf("model=%q", s.Model),
		fmt.Sprintf("model_context_window=%d", s.Context), "show_raw_agent_reasoning=true"} {
		arguments = append(arguments, "-c", setting)
	}
	return arguments, []string{"OSSRUN_API_KEY=" + s.Key}
}

// claudeSettings name one model for all that Claude Code would ask several for. What it sends home
// beside the conversation has no use here.
func claudeSettings(s agentPort) (arguments, environment []string) {
	environment = []string{"ANTHROPIC_BASE_URL=" + s.URL, "ANTHROPIC_AUTH_TOKEN=" + s.Key,
		"ANTHROPIC_API_KEY=", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	for _, use := range []string{"MODEL", "DEFAULT_HAIKU_MODEL", "DEFAULT_SONNET_MODEL",
		"DEFAULT_OPUS_MODEL", "SMALL_FAST_MODEL"} {
		environment = append(environment, "ANTHROPIC_"+use+"="+s.Model)
	}
	return nil, environment
}

// opencodeSettings are a config of its own, which it merges with the user's.
func opencodeSettings(s agentPort) (arguments, environment []string) {
	model := map[string]any{"name": s.Model, "reasoning": true, "tool_call": true,
		"limit": map[string]int{"context": s.Context, "output": s.Context / 4}}
	config, err := json.Marshal(map[string]any{
		"provider": map[string]any{"ossrun": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "ossrun",
			"options": map[string]string{"baseURL": s.URL + "/v1", "apiKey": s.Key},
			"models":  map[string]any{s.Model: model}}},
		"model": "ossrun/" + s.Model, "small_model": "ossrun/" + s.Model,
	})
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return nil, []string{"OPENCODE_CONFIG_CONTENT=" + string(config)}
}

func launchCommand(t Terminal) *cli.Command {
	var names []string
	for _, a := range agents {
		names = append(names, a.name)
	}
	var base, model string
	var port portFlags
	return &cli.Command{
		Name:      "launch",
		Usage:     "start a coding agent (" + strings.Join(names, ", ") + ") on this server",
		ArgsUsage: "[flags] AGENT [the agent's own arguments]",
		Description: "Example: ossrun launch codex\n" +
			"         ossrun launch claude -p \"What does main.go do?\"\n" +
			"         ossrun launch --print opencode\n\n" +
			"The agent gets the server that runs, or one that is started and ends with it. No " +
			"file of the agent's is\nchanged. What stands behind AGENT is passed on.",
		Flags: []cli.Flag{
			text(&base, "url", "", "the server at `URL`, as http://127.0.0.1:8000 (default: the "+
				"one that runs here)"),
			text(&model, "model", "", "`M` is one of the server's models (default: its first)"),
			text(&port.apiKeyFile, "api-key-file", "", "the server's key is in `FILE` (default: "+
				"OSSRUN_API_KEY)"),
			&cli.BoolFlag{Name: "print", Usage: "print what would be started, for a shell"},
			configFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return fail(exitUsage, "launch needs an agent: %s", strings.Join(names, ", "))
			}
			i := slices.Index(names, c.Args().First())
			if i < 0 {
				return fail(exitUsage, "%s", unknownName("agent", c.Args().First(), names)+
					"; there are "+strings.Join(names, ", "))
			}
			key, err := port.key()
			if err != nil {
				return err
			}
			l := launcher{c, t, agents[i]}
			return l.run(base, model, key)
		},
	}
}

// launcher starts one agent.
type launcher struct {
	c     *cli.Context
	t     Terminal
	agent agent
}

func (l launcher) run(base, model, key string) error {
	program, missing := exec.LookPath(l.agent.name)
	show := l.c.Bool("print")
	if missing != nil && !show {
		return fail(exitFailure, "%s is not installed: npm install -g %s", l.agent.name,
			l.agent.install)
	}
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
	if base == "" {
		list, err := runningServers(l.c.Context)
		switch {
		case err != nil:
			return err
		case len(list) > 0:
			base = list[0].URL
		case show:
			return fail(exitFailure, "no server runs: ossrun serve starts one")
		default:
			started, stop, err := l.serve(model)
			if err != nil {
				return err
			}
			defer stop()
			base = started
		}
	}
	s, err := look(l.c.Context, base, model, key)
	if err != nil {
		return err
	}
	arguments, environment := l.agent.settings(s)
	arguments = append(arguments, l.c.Args().Tail()...)
	if show {
		return l.print(arguments, environment)
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.t.In, l.t.Out, l.t.Err
	err = cmd.Run() // Ctrl-C is the agent's: it has the terminal
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return &exitError{failed.ExitCode(), ""}
	}
	return err
}

// print writes the command line; agents take the settings of this run, so it can be kept.
func (l launcher) print(arguments, environment []string) error {
	var words []string
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		words = append(words, name+"="+shellWord(value))
	}
	words = append(words, l.agent.name)
	for _, a := range arguments {
		words = append(words, shellWord(a))
	}
	fmt.Fprintln(l.t.Out, strings.Join(words, " "))
	return nil
}

// look asks a server for its models.
func look(ctx context.Context, base, model, key string) (agentPort, error) {
	base, err := reachable(base)
	if err != nil {
		return agentPort{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/models", nil)
	if err != nil {
		return agentPort{}, fail(exitUsage, "--url: %s", err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return agentPort{}, fail(exitFailure, "the server at %s: %s", base, rootCause(err))
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID      string
			Context int `json:"context_length"`
		}
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return agentPort{}, fail(exitFailure, "the server at %s wants its key: set "+
			"OSSRUN_API_KEY or give --api-key-file", base)
	case resp.StatusCode != http.StatusOK:
		return agentPort{}, fail(exitFailure, "the server at %s answers %s", base, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Data) == 0 {
		return agentPort{}, fail(exitFailure, "the server at %s has no list of models", base)
	}
	var names []string
	for _, m := range list.Data {
		if model == "" || strings.EqualFold(m.ID, model) {
			return agentPort{base, cmp.Or(key, "none"), m.ID, m.Context}, nil
		}
		names = append(names, m.ID)
	}
	return agentPort{}, fail(exitModel, "%s; the server has %s", unknownName("model", model, names),
		strings.Join(names, ", "))
}

// reachable is a server's address as a client on this machine can use it.
func reachable(base string) (string, error) {
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

// serve starts a server that ends with the agent. Its log is kept in a file, since the agent has
// the screen.
func (l launcher) serve(model string) (base string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	name := filepath.Join(xdg.StateHome, "ossrun", "launch.log")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", nil, err
	}
	log, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer log.Close() // the server has its own
	arguments := []string{"serve", "--port", "0"}
	if model != "" {
		arguments = append(arguments, "--model", model)
	}
	cmd := exec.Command(self, arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	process.OwnGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	fmt.Fprintf(l.t.Err, "ossrun: no server runs, so one is started for %s; its log is %s\n",
		l.agent.name, name)
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended stands in the log
		close(gone)
	}()
	stop = func() {
		_ = process.Interrupt(cmd) // an error means that it has ended
		select {
		case <-gone:
		case <-time.After(lastWords):
			process.End(cmd)
			<-gone
		}
	}
	base, err = ready(l.c.Context, cmd.Process.Pid, gone)
	if err != nil {
		stop()
		if said, read := os.ReadFile(name); read == nil && len(said) > 0 {
			lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
			err = fail(exitFailure, "the server did not start: %s", lines[len(lines)-1])
		}
		return "", nil, err
	}
	return base, stop, nil
}

// ready waits until the server of a process can answer.
func ready(ctx context.Context, pid int, gone <-chan struct{}) (string, error) {
	for {
		list, err := runningServers(ctx)
		if err != nil {
			return "", err
		}
		for _, s := range list {
			if s.PID == pid && s.State == join.Ready {
				return s.URL, nil
			}
		}
		select {
		case <-gone:
			return "", errors.New("it has ended")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
