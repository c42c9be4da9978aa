// The model of a chat, from its flags: that of any OpenAI server (--endpoint), or one opened by
// runtime/remote/local.
//
// A device or memory setting on the command line, or --alone, loads an engine in this process.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/remote"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat"
)

// chooseModel opens the model for the chat. An interactive chat may ask the person, and shows the
// load's progress. chosen is called after the last question and before the long work.
func chooseModel(c *cli.Context, t Terminal, o *serve.Options, interactive bool,
	report func(string), chosen func(), talk *chat.Options) (closeIt func(), err error) {
	if url := c.String("endpoint"); url != "" {
		return chooseEndpoint(c, url, report, talk)
	}
	opener := local.Opener{Options: modelOptions(c, t, o), Version: build().Version,
		// schema: a grammar cannot be passed to another process
		OwnEngine: len(o.Adapters) > 0 || slices.ContainsFunc(append(ownEngine, "schema"),
			func(name string) bool { return onCommandLine(c, name) }),
		Absent: absentModel(c, t, interactive), Chosen: chosen, Report: report}
	if interactive {
		talk.Loading = &chat.Loading{}
		opener.Loading = talk.Loading
	}
	m, err := opener.Open(c.Context)
	if err != nil {
		return nil, err
	}
	if s, ok := m.Server(); ok {
		where := "server at " + s.URL
		if s.Kind == local.Chat {
			where = fmt.Sprintf("chat of process %d", s.PID)
		}
		talk.Notice = "joined the " + where + ", which has the model loaded; --alone loads it here"
	}
	talk.Model, talk.Switch, talk.Models = m, m.Switch, m.Models
	return func() { _ = m.Close() }, nil // the process is about to end
}

// ownEngine are flags that need an engine in this process.
var ownEngine = []string{"alone", "lora", "device", "gpu", "cpu-experts", "isolate", "threads",
	"max-model-len", "compute", "dense",
	"kv-cache-dtype", "gpu-memory-utilization", "deterministic"}

func chooseEndpoint(c *cli.Context, url string, report func(string), talk *chat.Options) (
	closeIt func(), err error) {
	for _, name := range ownEngine {
		if onCommandLine(c, name) {
			return nil, fail(exitUsage, "--%[1]s has no effect with --endpoint: the remote server "+
				"decides. Remove --%[1]s", name)
		}
	}
	port, err := remote.Open(c.Context, url, portKey(url), report)
	if err != nil {
		return nil, explainKey(url, err)
	}
	model, err := port.Get(c.Context, c.String("model"))
	if err != nil {
		port.Close()
		return nil, fail(exitUsage, "%s", err)
	}
	if port.ShowsSchema() {
		talk.Format = ""
	}
	talk.Model, talk.Endpoint = model, url
	talk.Switch = func(ctx context.Context, name string) (session.Runner, error) {
		return port.Get(ctx, name)
	}
	talk.Models = func(context.Context) []session.ModelInfo { return port.List() }
	return port.Close, nil
}

// openPort opens the server at base. An empty model becomes the server's first.
func openPort(ctx context.Context, base string, model *string,
	with ...func(*client.Client) *client.Client) (*client.Client, error) {
	c, err := client.New(base, portKey(base))
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	for _, add := range with {
		c = add(c)
	}
	if *model == "" {
		if *model, err = c.FirstModel(ctx); err != nil {
			c.Close()
			return nil, explainKey(base, err)
		}
	}
	return c, nil
}

// portKey is the key for the server at base. OPENAI_API_KEY may be worth money, so it is sent only
// to the server that OpenAI's own programs would use.
func portKey(base string) string {
	key := cmp.Or(os.Getenv("OSSRUN_API_KEY"), os.Getenv("VLLM_API_KEY"))
	if key == "" && client.SameServer(base, cmp.Or(os.Getenv("OPENAI_BASE_URL"),
		"https://api.openai.com/v1")) {
		key = os.Getenv("OPENAI_API_KEY")
	}
	return key
}

// explainKey explains err if the server refused the request for lack of a key.
func explainKey(base string, err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Status != http.StatusUnauthorized {
		return err
	}
	hint := ""
	if os.Getenv("OPENAI_API_KEY") != "" {
		hint = "; OPENAI_API_KEY is sent to OpenAI, or to the server of OPENAI_BASE_URL, only"
	}
	return fail(exitFailure, "the server at %s wants its key: set OSSRUN_API_KEY%s", base, hint)
}
