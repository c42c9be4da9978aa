// The models of one verb: opened with what the flags say, with what they have to say on stderr. In
// the first run no gpt-oss is in the cache, and a person decides. What other programs on this
// machine have is offered before anything is fetched; the demo is what Enter takes.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

// openModels opens the device that the flags ask for.
// ctx ends what it loads later, too.
func openModels(ctx context.Context, c *cli.Context, t Terminal, o *serve.Options) (*serve.Models,
	error) {
	o.Notify = notify(t)
	if o.Progress == nil {
		o.Progress = showProgress(t)
	}
	m, err := serve.New(ctx, *o)
	unwanted := c.IsSet("deterministic") && !o.Settings.Deterministic && !c.Bool("print-config")
	if err == nil && unwanted && !m.OnGPU() {
		o.Notify(
			"--deterministic=false: the CPU engine always gives the same tokens for the same seed")
	}
	return m, err
}

func printSettled(out io.Writer, c *cli.Context, o *serve.Options, m *serve.Models) error {
	settled := m.Settled()
	*o = settled.Options // the flags are bound to it
	device := "CPU"
	if m.OnGPU() {
		device = "GPU"
	}
	return printConfig(out, c, settled, device)
}

// notify tells the user what runtime/serve has to say.
func notify(t Terminal) func(string) {
	return func(line string) { fmt.Fprintf(t.Err, "ossrun: %s\n", line) }
}

// absentModel is what happens when no model is named and none is here: a person is asked where ask
// is set, anybody else gets the demo and one line that says so.
func absentModel(c *cli.Context, t Terminal, m *serve.Models, ask bool) func() (checkpoint.Found,
	error) {
	return func() (checkpoint.Found, error) {
		demo, err := checkpoint.Resolve("demo")
		if err != nil {
			return demo, err
		}
		if ask && isTerminal(t.In) && isTerminal(t.Out) {
			return offer(c.Context, t, m, demo)
		}
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine yet, so the tiny "+
			"built-in demo answers; `ossrun pull 20b` gets a real one")
		return demo, nil
	}
}

// offer says what this machine is and would do, asks a person what to do when no model is here, and
// downloads one if that is wanted.
func offer(ctx context.Context, t Terminal, m *serve.Models, demo checkpoint.Found) (
	checkpoint.Found, error) {
	client := hub.FromEnvironment()
	defer client.Close()
	others := usable(checkpoint.ListElsewhere())
	if client.Offline && len(others) == 0 {
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine and HF_HUB_OFFLINE "+
			"forbids to fetch one, so the tiny built-in demo answers")
		return demo, nil
	}
	e, _ := models.Lookup("20b")
	p, err := m.Preview(ctx, e)
	if err != nil {
		return checkpoint.Found{}, err
	}
	f := firstRun{cpu: doctor.CPU(), cores: serve.Cores(), gpus: p.GPUs, disk: freeOnDisk(),
		model: e, preview: p}
	var choices []func() (checkpoint.Found, error)
	var words []string
	choice := func(text string, what func() (checkpoint.Found, error)) {
		choices, words = append(choices, what), append(words, text)
	}
	for _, e := range others {
		choice(fmt.Sprintf("use %s, which %s has here: nothing is downloaded or copied%s", e.Name,
			e.Program, f.tooLarge(e.Model.Bytes)), func() (checkpoint.Found, error) {
			return checkpoint.Resolve(e.Name)
		})
	}
	if !client.Offline {
		choice(f.ofDownload(), func() (checkpoint.Found, error) {
			target, err := models.ParseTarget(e.ID)
			if err != nil {
				return checkpoint.Found{}, err
			}
			if err := download(ctx, client, target, false, &pullScreen{name: target.Name,
				terminal: t, bar: isTerminal(t.Err)}); err != nil {
				return checkpoint.Found{}, err
			}
			return checkpoint.Resolve(e.ID)
		})
	}
	choice("talk to the built-in demo: tiny, knows a little about ossrun",
		func() (checkpoint.Found, error) { return demo, nil })
	fmt.Fprint(t.Out, f.text(widthOf(t.Out), words))
	for {
		fmt.Fprint(t.Out, whichOf(len(choices)))
		answer, err := readAnswer(t)
		if err != nil {
			return checkpoint.Found{}, err
		}
		if answer == "" {
			return demo, nil
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
			return choices[n-1]()
		}
		fmt.Fprintf(t.Out, "%q is none of them: type %s, or nothing for %d\n", answer,
			inRange(len(choices)), len(choices))
	}
}

// freeOnDisk is the bytes free where downloads go, -1 where nobody knows.
func freeOnDisk() int64 {
	root, err := store.Root()
	if err != nil {
		return -1
	}
	for filepath.Dir(root) != root {
		if free, err := store.Free(root); err == nil {
			return free
		}
		root = filepath.Dir(root) // it is made by the first download
	}
	return -1
}

// readAnswer reads the line that a person answers a question with, and nothing behind it; at the
// end of input it is "".
func readAnswer(t Terminal) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := t.In.Read(one)
		if n > 0 && one[0] == '\n' || errors.Is(err, io.EOF) {
			return strings.TrimSpace(string(line)), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, one[:n]...)
	}
}

func usable(list []checkpoint.Elsewhere) (out []checkpoint.Elsewhere) {
	for _, e := range list {
		if e.Model != nil {
			out = append(out, e)
		}
	}
	return out
}

// instead offers, before a download, the same model that another program has here. It gives true
// when that is taken, which only a person can.
func instead(t Terminal, target models.Target) (bool, error) {
	entry, ok := models.Lookup(target.Repo.ID())
	if !ok || target.Revision != "" || entry.Special != "" {
		return false, nil
	}
	if found, err := checkpoint.FindTarget(target); err == nil && found.Complete {
		return false, nil // it is here: asking for something newer
	}
	for _, e := range usable(checkpoint.ListElsewhere()) {
		if !e.SameShape(entry) {
			continue
		}
		use := "ossrun chat --model " + e.Name
		if !isTerminal(t.In) || !isTerminal(t.Err) {
			fmt.Fprintf(t.Err,
				"ossrun: %s has a model of this shape here: %s uses it where it lies\n",
				e.Program, use)
			return false, nil
		}
		fmt.Fprintf(t.Err,
			"%s has %s here.\nUse that where it lies instead of downloading %.1f GB? [Y/n] ",
			e.Program, e.Name, gb(entry.DownloadBytes))
		answer, err := readAnswer(t)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "", "y", "yes":
			_, err := fmt.Fprintf(t.Out, "nothing was downloaded; %s uses it\n", use)
			return true, err
		}
		return false, nil
	}
	return false, nil
}
