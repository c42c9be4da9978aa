// The first run: no gpt-oss is in the cache, and a person decides. What other programs on this
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

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
)

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
	free := p.Free
	printPreview(t.Out, e, p)
	fmt.Fprintf(t.Out, "No gpt-oss model is in %s yet.\n\n", cacheRoot())
	var choices []func() (checkpoint.Found, error)
	choice := func(what func() (checkpoint.Found, error), format string, args ...any) {
		choices = append(choices, what)
		fmt.Fprintf(t.Out, "  %d  %s\n", len(choices), fmt.Sprintf(format, args...))
	}
	fits := func(bytes int64) {
		if free < bytes {
			fmt.Fprintf(t.Out, "     (it will not fit: %.1f GB of memory are free)\n", gb(free))
		}
	}
	for _, e := range others {
		choice(func() (checkpoint.Found, error) { return checkpoint.Resolve(e.Name) },
			"use %s, which %s has here: nothing is downloaded or copied", e.Name, e.Program)
		fits(e.Model.Bytes)
	}
	if !client.Offline {
		choice(func() (checkpoint.Found, error) {
			target, err := models.ParseTarget(e.ID)
			if err != nil {
				return checkpoint.Found{}, err
			}
			if err := download(ctx, client, target, false, &pullScreen{name: target.Name,
				terminal: t, bar: isTerminal(t.Err)}); err != nil {
				return checkpoint.Found{}, err
			}
			return checkpoint.Resolve(e.ID)
		}, "download %s: %.1f GB%s, %s at 100 Mbit/s", e.Spec.Name, gb(e.DownloadBytes),
			ofDisk(), minutes(float64(e.DownloadBytes)*8/100e6))
		fits(p.Needs)
	}
	choice(func() (checkpoint.Found, error) { return demo, nil },
		"talk to the built-in demo: tiny, knows a little about ossrun")
	wanted := "1 or 2"
	if len(choices) > 2 {
		wanted = fmt.Sprintf("1 to %d", len(choices))
	}
	for {
		fmt.Fprintf(t.Out, "\nChoose %s [%d]: ", wanted, len(choices))
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
		fmt.Fprintf(t.Out, "%q is none of them: type %s, or nothing for %d", answer, wanted,
			len(choices))
	}
}

// printPreview says what was found, and what the model would do on it.
func printPreview(out io.Writer, e models.Entry, p serve.Preview) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "  %-11s  %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(out, "This machine:")
	line("computes", "%s", p.Device)
	line("memory", "%.1f GB are free for a model", gb(p.Free))
	name := e.Spec.Name
	switch {
	case p.None != nil:
		line(name, "does not fit: it needs %.1f GB", gb(p.Needs))
	case p.Rate > 0:
		line(name, "up to %s a second by the speed of the memory", count(int(p.Rate+0.5), "token"))
		line("", "%.1f GB of memory with a context of %d tokens", gb(p.Plan.Total), p.Plan.Context)
	default:
		line(name, "%.1f GB of memory with a context of %d tokens", gb(p.Plan.Total),
			p.Plan.Context)
	}
	fmt.Fprintln(out)
}

// ofDisk is how much room there is for a download, "" where nobody knows.
func ofDisk() string {
	root, err := store.Root()
	if err != nil {
		return ""
	}
	for filepath.Dir(root) != root {
		if free, err := store.Free(root); err == nil {
			return fmt.Sprintf(" of the %.0f GB that are free on the disk", gb(free))
		}
		root = filepath.Dir(root) // it is made by the first download
	}
	return ""
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

// usable leaves those out that cannot be used.
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

// cacheRoot is where downloads go, for people.
func cacheRoot() string {
	root, err := store.Root()
	if err != nil {
		return "the Hugging Face cache"
	}
	return root
}

func minutes(seconds float64) string {
	if seconds < 90 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}
