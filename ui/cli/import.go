// ossrun import: a checkpoint in the released layout from a fine-tune in 16 bits, or from a GGUF
// file whose experts are not MXFP4.

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/convert"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/store"
)

func importCommand(t Terminal) *cli.Command {
	out, adapters := "", []lora.Ref(nil)
	return &cli.Command{
		Name: "import",
		Flags: flagTable(textFlag(&out, "out"), boolFlag("json"), configFlag(), pullFlag(),
			repeatedFlag("lora", func(c *cli.Context, v string) error {
				ref, err := findAdapter(c, v)
				adapters = append(adapters, ref)
				return err
			})),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage, "import needs one SOURCE, a folder, a GGUF file or "+
					"hf:owner/name. Run ossrun import --help")
			}
			client := hub.FromEnvironment()
			defer client.Close()
			source, remote, err := importSource(c, t, c.Args().First(), client)
			if err != nil {
				return err
			}
			if out == "" {
				name := importName(source, c.Args().First())
				for _, ref := range adapters {
					name += "+" + ref.Name
				}
				out = filepath.Base(name + "-mxfp4")
			}
			show, done := showProgress(t)("importing")
			r, err := convert.Run(c.Context, source, convert.Options{Out: out, Adapters: adapters,
				Remote: remote, Progress: show})
			done()
			switch {
			case c.Context.Err() != nil:
				t.report("interrupted. Run the same command to resume")
				return c.Context.Err()
			case store.IsFull(err):
				return fail(exitFailure, "%s. Free disk space and run the same command to resume",
					err)
			case isError[*hub.UnreachableError](err):
				return fail(exitFailure, "%s; run the same command to resume", err)
			case err != nil:
				return &exitError{exitModel, err.Error()}
			case c.Bool("json"):
				return json.NewEncoder(t.Out).Encode(r)
			}
			return showImport(t, r)
		},
	}
}

// importSource is the source's folder or file, or a repository that is not downloaded.
func importSource(c *cli.Context, t Terminal, name string, client *hub.Client) (string,
	*hub.Remote, error) {
	if _, err := os.Stat(name); err == nil {
		return name, nil, nil
	}
	when, err := pullWord(c)
	if err == nil && (when == "always" || !strings.HasPrefix(name, "hf:")) {
		err = fetchModel(c.Context, t, name, when, nil)
	}
	if err != nil {
		return "", nil, err
	}
	if !strings.HasPrefix(name, "hf:") {
		source, err := checkpoint.Resolve(name)
		unknown, _ := errors.AsType[*models.UnknownModelError](err)
		switch {
		case source.Demo:
			return "", nil, fail(exitModel, "%s is built in: it needs no import", name)
		case unknown != nil && unknown.Meaning == "":
			return "", nil, fail(exitModel, "there is no folder or file %s", name)
		}
		if err != nil {
			err = &exitError{exitModel, err.Error()}
		}
		return source.Path, nil, err
	}
	target, err := models.ParseTarget(name)
	if err != nil {
		return "", nil, &exitError{exitModel, err.Error()}
	}
	if cached, err := checkpoint.FindTarget(target); err == nil && cached.Complete {
		return cached.Path, nil, nil
	}
	if client.Offline {
		root, err := store.Root()
		return "", nil, cmp.Or[error](err, &hub.OfflineError{Repo: target.Repo.ID(), Root: root})
	}
	if when == "never" {
		return "", nil, fail(exitModel, "%s is not downloaded, and --pull is never", name)
	}
	show := &pullScreen{name: target.Name, terminal: t}
	client.UserAgent = "ossrun/" + build().Version
	client.Retrying = show.retrying(client)
	show.note(fmt.Sprintf("reading %s from %s while it is converted", target.Repo.ID(),
		client.Endpoint))
	remote, err := client.Remote(c.Context, target.Repo, target.Revision)
	return name, remote, err
}

func importName(path, source string) string {
	if e, ok := models.Lookup(source); ok {
		return e.Spec.Name
	}
	if rest, ok := strings.CutPrefix(source, "hf:"); ok {
		name, _, _ := strings.Cut(rest, "@")
		return filepath.Base(name)
	}
	if stat, err := os.Stat(path); err == nil && !stat.IsDir() {
		return gguf.ModelName(path)
	}
	absolute, _ := filepath.Abs(path) // fails only without a working folder
	return filepath.Base(cmp.Or(absolute, path))
}

// showImport prints the loss of each layer, and the command to run.
func showImport(t Terminal, r convert.Result) error {
	var all convert.Loss
	w := columns(t.Out)
	fmt.Fprintln(w, "LAYER\tEXACT BLOCKS\tERROR\tWORST BLOCK")
	row := func(name string, l convert.Loss) {
		fmt.Fprintf(w, "%s\t%.2f%%\t%.2f%%\t%.1f%%\n", name, 100*float64(l.Exact)/float64(l.Blocks),
			100*l.Relative(), 100*l.Worst)
	}
	for i, l := range r.Layers {
		all.Add(l)
		row(fmt.Sprint(i), l)
	}
	row("all", all)
	if err := w.Flush(); err != nil {
		return err
	}
	verdict := "Errors are root mean squares, relative to the weights."
	if all.Exact == all.Blocks {
		verdict = "Nothing was lost: all experts came from MXFP4."
	}
	_, err := fmt.Fprintf(cleanWriter{t.Out}, "%s\nrun it with: ossrun chat --model %s\n", verdict,
		shellPath(r.Path))
	return err
}

// shellPath is a folder for --model, unlike any name of the catalogue.
func shellPath(path string) string {
	if !strings.ContainsAny(path, `/\`) {
		return "." + string(filepath.Separator) + path
	}
	return path
}
