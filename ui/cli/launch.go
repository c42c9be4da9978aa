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
	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// workRoom is the context that an agent needs after its first request: files, results, answers.
const workRoom = 4096

func launchCommand(t Terminal) *cli.Command {
	names := mapSlice(agents, func(a agent) string { return a.Name })
	var base, model string
	var port portFlags
	return &cli.Command{
		Name:        "launch",
		Description: "Agents: " + strings.Join(names, ", ") + ".",
		Flags: flagTable(
			serverFlag(&base, "url"),
			textFlag(&model, "model"),
			pullFlag(),
			inputFlag(&port.apiKeyFile, "api-key-file"),
			boolFlag("print"),
			boolFlag("full"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return printAgents(t)
			}
			i := slices.Index(names, c.Args().First())
			if i < 0 {
				return fail(exitUsage, "unknown agent %q. Run ossrun launch for the list",
					c.Args().First())
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
	program, missing := exec.LookPath(a.Program)
	show := c.Bool("print")
	if missing != nil && !show {
		return fail(exitFailure, "%s is not installed. Run %s", a.Name, a.Install)
	}
	needed := local.ServerFinder{Caller: a.Name, Model: model, MayStart: !show, Report: notify(t),
		Fetch: fetchNamed(c, t, nil)}
	base, stop, err := needed.Find(c.Context, base)
	if err != nil {
		return err
	}
	defer stop()
	s, err := probe(c.Context, base, model, key)
	if err != nil {
		return err
	}
	if err := fit(&s, a, c.Bool("full"), runsOnCPU(c.Context, s), notify(t)); err != nil {
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
			words = append(words, name+"="+vllm.Quote(value))
		}
		words = append(words, a.Program)
		words = append(words, mapSlice(arguments, vllm.Quote)...)
		_, err := fmt.Fprintln(t.Out, strings.Join(words, " "))
		return err
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.In, t.Out, t.Err
	if isTerminal(t.Out) {
		ctx, stop := context.WithCancel(c.Context)
		defer stop()
		go showPrefill(ctx, s, t.Out)
	}
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
	var list struct {
		Data  []client.Model
		Tools []struct{ Type string } // that the server runs
	}
	err = c.Call(ctx, "GET", "/v1/models", nil, &list)
	refused, no := errors.AsType[*client.Error](err)
	switch {
	case no && refused.Status == http.StatusUnauthorized:
		return agentPort{}, fail(exitFailure, "the server at %s wants its key: set "+
			"OSSRUN_API_KEY or give --api-key-file", base)
	case no:
		return agentPort{}, refused
	case err != nil:
		return agentPort{}, fail(exitFailure, "the server at %s: %s", base, rootCause(err))
	case len(list.Data) == 0:
		return agentPort{}, fail(exitFailure, "the server at %s has no list of models", base)
	}
	var names []string
	for _, m := range list.Data {
		if model == "" || strings.EqualFold(m.ID, model) {
			return agentPort{URL: base, Key: cmp.Or(key, "none"), Model: m.ID,
				Context: cmp.Or(m.Window, m.Max), NoWeb: !slices.Contains(list.Tools,
					struct{ Type string }{"web_search"})}, nil
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

// fit makes the agent lean if it must be, or refuses one that cannot work in the context.
func fit(s *agentPort, a agent, full, cpu bool, report func(line string)) error {
	fits := func(prompt int) bool { return s.Context == 0 || prompt+workRoom <= s.Context }
	lean := a.Lean > 0 && fits(a.Lean) && !full
	switch {
	case lean && !fits(a.Prompt):
		report(fmt.Sprintf("%s has fewer tools: its prompt of %s tokens does not fit into a "+
			"context of %s", a.Name, term.Number(a.Prompt), term.Number(s.Context)))
	case lean && cpu:
		report(fmt.Sprintf("%s has fewer tools, since the model runs on a CPU: its prompt is %s "+
			"tokens instead of %s. --full gives it all tools", a.Name, term.Number(a.Lean),
			term.Number(a.Prompt)))
	case !fits(a.Prompt):
		return fail(exitFailure, "%s needs a context of %s tokens, and %s has %s. Run ossrun "+
			"serve --max-model-len %d, or ossrun launch pi", a.Name,
			term.Number(a.Prompt+workRoom), s.Model, term.Number(s.Context), a.Prompt+workRoom)
	default:
		return nil
	}
	s.Lean = true
	return nil
}

// runsOnCPU tells whether a server of this user has the model on a CPU.
func runsOnCPU(ctx context.Context, s agentPort) bool {
	list, _ := local.Running(ctx) // without a list none is known
	for _, server := range list {
		for _, m := range server.Models {
			if server.URL == s.URL && strings.HasPrefix(m.Device, "cpu") &&
				(m.Name == s.Model || slices.Contains(m.Aliases, s.Model)) {
				return true
			}
		}
	}
	return false
}

// printAgents lists the agents, and which are installed.
func printAgents(t Terminal) error {
	w := columns(t.Out)
	fmt.Fprintln(w, "AGENT\tPROMPT\tLEAN\tINSTALLED")
	for _, a := range agents {
		installed, lean := "yes", "-"
		if _, err := exec.LookPath(a.Program); err != nil {
			installed = "no. Run " + a.Install
		}
		if a.Lean > 0 {
			lean = term.Number(a.Lean)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", a.Name, term.Number(a.Prompt), lean, installed)
	}
	return w.Flush()
}
