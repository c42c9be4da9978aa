// The model that a chat begins with, as its flags say: of the OpenAI port of any server
// (--endpoint), or one that runtime/remote/local opens.
//
// A chat that names a device or a memory setting on its command line gets an engine of its own, and
// so does --alone.

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

// chooseModel opens the model and tells the chat of it. stays is a chat that stays open: a person
// may be asked, and sees how far a load is. chosen is called between the last question to the
// person and the long work.
func chooseModel(c *cli.Context, t Terminal, o *serve.Options, stays bool, report func(string),
	chosen func(), talk *chat.Options) (closeIt func(), err error) {
	if url := c.String("endpoint"); url != "" {
		return chooseEndpoint(c, url, report, talk)
	}
	opener := local.Opener{Options: modelOptions(c, t, o), Version: build().Version,
		OwnEngine: wantsOwn(c) || len(o.Lora) > 0, Absent: absentModel(c, t, stays), Chosen: chosen,
		Report: report}
	if stays {
		talk.Loading = &chat.Loading{}
		opener.Loading = talk.Loading
	}
	m, err := opener.Open(c.Context)
	if err != nil {
		return nil, err
	}
	if s, ok := m.Server(); ok {
		where := either(s.Kind == local.Chat, fmt.Sprintf("chat of process %d", s.PID),
			"server at "+s.URL)
		talk.Notice = "joined the " + where + ", which has the model loaded; --alone loads it here"
	}
	talk.Model, talk.Switch, talk.Models = m, m.Switch, m.Models
	return func() { _ = m.Close() }, nil // the process is about to end
}

// ownEngine are flags that only an engine of one's own can follow.
var ownEngine = []string{"alone", "lora", "device", "gpu", "cpu-experts", "isolate", "threads",
	"max-model-len", "compute", "dense",
	"kv-cache-dtype", "gpu-memory-utilization", "deterministic"}

func wantsOwn(c *cli.Context) bool {
	return typed(c, "schema") || // a grammar is not handed to another process
		slices.ContainsFunc(ownEngine, func(name string) bool { return typed(c, name) })
}

// chooseEndpoint asks the port at url for its models and takes the one that is wanted.
func chooseEndpoint(c *cli.Context, url string, report func(string), talk *chat.Options) (
	closeIt func(), err error) {
	for _, name := range ownEngine {
		if typed(c, name) {
			return nil, fail(exitUsage, "--%[1]s has no effect with --endpoint: the remote server "+
				"decides. Remove --%[1]s", name)
		}
	}
	port, err := remote.Open(c.Context, url, portKey(url), report)
	if err != nil {
		return nil, wantsKey(url, err)
	}
	model, err := port.Get(c.Context, c.String("model"))
	if err != nil {
		port.Close()
		return nil, fail(exitUsage, "%s", err)
	}
	if port.TellsOfForms() {
		talk.Format = ""
	}
	talk.Model = model
	talk.Switch = func(ctx context.Context, name string) (session.Runner, error) {
		return port.Get(ctx, name)
	}
	talk.Models = func(context.Context) []session.ModelInfo { return port.List() }
	return port.Close, nil
}

// openPort opens the server at base. Its first model is meant where none is named.
func openPort(ctx context.Context, base string, model *string) (*client.Client, error) {
	c, err := client.New(base, portKey(base))
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	if *model == "" {
		if *model, err = c.FirstModel(ctx); err != nil {
			c.Close()
			return nil, wantsKey(base, err)
		}
	}
	return c, nil
}

// portKey is the key that the server at base is sent. OPENAI_API_KEY may be worth money elsewhere,
// so it is for the server that OpenAI's own programs would send it to, and for no other.
func portKey(base string) string {
	key := cmp.Or(os.Getenv("OSSRUN_API_KEY"), os.Getenv("VLLM_API_KEY"))
	if key == "" && client.OneServer(base, cmp.Or(os.Getenv("OPENAI_BASE_URL"),
		"https://api.openai.com/v1")) {
		key = os.Getenv("OPENAI_API_KEY")
	}
	return key
}

// wantsKey says what to do where a server refuses err for want of its key.
func wantsKey(base string, err error) error {
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
