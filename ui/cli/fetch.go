// The download of a model that a verb names: one rule for chat, run, serve, bench, batch,
// launch and import, and for adapters.
//
//	on a terminal        asks, with size, time at the measured speed and free disk space
//	--pull always        downloads it, or a newer revision
//	--pull missing       downloads it if it is not complete here
//	--pull never         reports that it is missing; the default without a terminal
//
// What must stay true: a model that no person, flag or variable asked for is never downloaded;
// stdout has only the verb's output.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/store"
)

const pullVariable = "OSSRUN_PULL"

var pullWords = []string{"ask", "always", "missing", "never"}

func pullFlag() []cli.Flag {
	return flagTable(groupModel, choiceFlag("pull", "ask", func(string) {}, pullWords...))
}

// fetchNamed is serve.Options.Fetch of a verb. watch gets the progress, too; nil: none does.
func fetchNamed(c *cli.Context, t Terminal, watch func(string, hub.Progress)) func(context.Context,
	string) error {
	return func(ctx context.Context, name string) error {
		when, err := pullWord(c)
		if err != nil {
			return err
		}
		return fetchModel(ctx, t, name, when, watch)
	}
}

func pullWord(c *cli.Context) (when string, err error) {
	when = strings.ToLower(c.String("pull"))
	if word := os.Getenv(pullVariable); word != "" && !c.IsSet("pull") {
		if when = strings.ToLower(word); !slices.Contains(pullWords, when) {
			err = fail(exitUsage, "%s must be %s, not %q", pullVariable, oneOfWords(pullWords),
				word)
		}
	}
	return when, err
}

// findAdapter finds an adapter that --lora names, in the cache after its download.
func findAdapter(c *cli.Context, text string) (lora.Ref, error) {
	ref, err := lora.Find(text)
	missing, ok := errors.AsType[*lora.NotCachedError](err)
	if ok && !c.Bool("print-config") && !c.Bool("dry-run") && c.String("endpoint") == "" {
		t := Terminal{In: c.App.Reader, Out: c.App.Writer, Err: c.App.ErrWriter}
		if err := fetchNamed(c, t, nil)(c.Context, "hf:"+missing.ID); err != nil {
			return ref, err
		}
		ref, err = lora.Find(text)
	}
	if err != nil {
		err = fail(exitModel, "--lora: %s", err)
	}
	return ref, err
}

// fetchModel downloads a named model, if it is to be; else looking for it reports the remedy.
func fetchModel(ctx context.Context, t Terminal, name, when string,
	watch func(string, hub.Progress)) error {
	current, err := checkpoint.Resolve(name)
	missing := isError[*checkpoint.NotCachedError](err) ||
		err == nil && current.Repo != "" && !current.Complete
	person := isTerminal(t.In) && isTerminal(t.Err)
	target, parseErr := models.ParseTarget(name)
	switch {
	case parseErr != nil, !missing && (when != "always" || err != nil || current.Repo == ""):
		return nil
	case when == "never", when == "ask" && !person:
		return nil
	}
	client := hub.FromEnvironment()
	defer client.Close()
	// stdout may be for an answer only
	screen := Terminal{In: t.In, Out: t.Err, Err: t.Err}
	if missing && when == "ask" && !client.Offline {
		if accepted, err := askFetch(ctx, screen, client, target); err != nil || !accepted {
			return err
		}
	}
	return download(ctx, client, target, false, &pullScreen{name: target.Name, terminal: screen,
		bar: isTerminal(t.Err), watch: watch})
}

// askFetch asks a person whether to download a model.
func askFetch(ctx context.Context, t Terminal, client *hub.Client, target models.Target) (bool,
	error) {
	attempts := client.Attempts
	client.Attempts = 1 // a person waits
	remote, err := client.Remote(ctx, target.Repo, target.Revision)
	if err != nil {
		return false, err
	}
	bytes, rate := remote.Measure(ctx)
	client.Attempts = attempts
	if root, err := store.Root(); err == nil {
		if partial, err := store.PlanRemoval(root, target.Repo, ""); err == nil && partial != nil {
			bytes = max(0, bytes-partial.Bytes)
		}
	}
	// a model of another program needs no download
	if _, err := offerForeign(Terminal{Err: t.Err}, target); err != nil {
		return false, err
	}
	question := fmt.Sprintf("%s is not downloaded: %s", target.Name, size(bytes))
	if rate > 0 {
		question += fmt.Sprintf(", %s at %.1f MB/s", formatSeconds(float64(bytes)/rate), rate/1e6)
	}
	if free := freeOnDisk(); free >= 0 {
		question += fmt.Sprintf("; %.1f GB of disk are free", gb(free))
	}
	return askYes(t, question+".\nDownload it now? [Y/n] ", true)
}
