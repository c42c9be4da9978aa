// The flags that give a model tools: common to chat and serve.

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/runtime/tools/python"
)

// toolFlags bind tools.Options. standard is what --tools says where it is not given.
func toolFlags(o *tools.Options, standard string) []cli.Flag {
	*o = tools.Options{Names: listOf(standard)}
	about := "(default: none)"
	if standard != "" {
		about = "(default: auto on 127.0.0.1, else none)"
	}
	return flagTable(groupTools,
		parsed("tools", standard, "let the model use these `TOOLS`: browser, python, auto for "+
			"those that can run here, or none "+about, "", func(v string) bool {
			o.Names = listOf(strings.ToLower(v))
			if len(o.Names) == 1 && o.Names[0] == "none" {
				o.Names = nil
			}
			return true
		}),
		list(&o.Servers, "tool-server", "the tools of MCP servers at `HOST:PORT,...`, as for "+
			"vLLM; demo is --tools browser,python"),
		text(&o.Config, "mcp-config", "the tools of the MCP servers in `FILE`, which has "+
			"mcpServers as for Claude Desktop and Cursor"),
		backendFlags(o))
}

// backendFlags say what the built-in tools run on.
func backendFlags(o *tools.Options) []cli.Flag {
	return flagTable(groupTools,
		parsed("python-tool", "", "run the model's python in `SANDBOX`: bwrap, podman, docker, or "+
			"unsafe, which is none (default: the first that is here)",
			"must be one of "+strings.Join(python.Names, ", "), func(v string) bool {
				o.Sandbox = strings.ToLower(v)
				return slices.Contains(python.Names, o.Sandbox)
			}),
		text(&o.Search, "search", "search with `E`: exa, brave, the URL of a SearXNG, or none "+
			"(default: what EXA_API_KEY, BRAVE_API_KEY or SEARXNG_URL is set for)"),
		list(&o.Allow, "browser-allow", "let the browser reach these `NETWORKS` too, as "+
			"192.168.0.0/16,10.1.2.3 (default: public addresses only)"))
}

// openTools finds what the tools need and tells what is missing.
func openTools(ctx context.Context, o tools.Options, tell func(string)) (*tools.Tools, error) {
	t, err := tools.Open(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fail(exitUsage, "%s", err)
	}
	for _, n := range t.Notes {
		tell(n)
	}
	return t, nil
}

// chatTools are those of one conversation at a time, not safe for concurrent use.
type chatTools struct {
	from *tools.Tools
	tell func(string)
	now  []session.Tool
}

func toolsOfChat(ctx context.Context, o tools.Options, tell func(string)) (*chatTools, error) {
	t, err := openTools(ctx, o, tell)
	if err != nil {
		return nil, err
	}
	c := &chatTools{from: t, tell: tell}
	if _, err := c.renew(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// renew closes the tools and makes those of another conversation.
func (c *chatTools) renew() (list []session.Tool, err error) {
	c.leave()
	c.now, err = c.from.For()
	return c.now, err
}

func (c *chatTools) leave() {
	for _, tool := range c.now {
		if err := tool.Close(); err != nil {
			c.tell("closing a tool: " + err.Error())
		}
	}
	c.now = nil
}

func (c *chatTools) close() {
	c.leave()
	_ = c.from.Close() // what no conversation has is another program's
}

func toolLine(e session.ToolEnd, so session.Result) string {
	line := e.Result.Title
	if line == "" && e.Index < len(so.Calls) {
		line = so.Calls[e.Index].Recipient
	}
	if e.Err != nil {
		line += ": " + e.Err.Error()
	}
	return fmt.Sprintf("[%s, %.1f s]", line, e.Took.Seconds())
}

// printSources says on stderr what the marks of an answer stand for.
func printSources(t Terminal, res session.Result) {
	answer, told := []rune(res.Answer), map[string]bool{}
	for _, x := range res.Citations {
		line := fmt.Sprintf("%s %s, %s", string(answer[x.Start:x.End]), x.Title, x.URL)
		if !told[line] {
			told[line] = true
			fmt.Fprintln(t.Err, printable(line, isTerminal(t.Err)))
		}
	}
}
