// ossrun rm: deletes a model from the cache, or a GGUF file's ordered copy.

package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func rmCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name:  "rm",
		Flags: flagTable(boolFlag("yes"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage, "rm needs one MODEL, such as 20b. Run ossrun list")
			}
			name := c.Args().First()
			if name == models.Demo {
				return fail(exitUsage, "demo is built into ossrun and cannot be deleted")
			}
			if source, err := checkpoint.Resolve(name); err == nil && source.Ordered() != "" {
				return removeOrdered(t, name, source, c.Bool("yes"))
			} else if err == nil && source.GGUF != nil {
				return fail(exitUsage, "%s is a GGUF file, which ossrun only reads (%s). Delete "+
					"it with the program that keeps it", name, source.Path)
			}
			target, err := models.ParseTarget(name)
			if err != nil {
				related, unknown := errors.AsType[*models.UnknownModelError](err)
				repo, ok := store.ParseRepo(strings.TrimPrefix(name, "hf:"))
				if !unknown || related.Meaning == "" || !ok {
					return &exitError{exitModel, err.Error()}
				}
				// a model that cannot run can still be deleted
				target = models.Target{Repo: repo, Name: repo.ID()}
			}
			root, err := store.Root()
			if err != nil {
				return err
			}
			removal, err := store.PlanRemoval(root, target.Repo, target.Revision)
			if err != nil {
				return fail(exitFailure, "looking at %s: %s", target.Name, err)
			}
			if removal == nil {
				return fail(exitModel, "%s is not in %s", target.Name, root)
			}
			what := fmt.Sprintf("%s (%s, %s)", target.Name, term.Count(len(removal.Snapshots),
				"snapshot"), size(removal.Bytes))
			if err := confirmRemoval(t, c.Bool("yes"), what, root); err != nil {
				return err
			}
			if err := removal.Run(); err != nil {
				return fail(exitFailure, "deleting %s: %s", target.Name, err)
			}
			q8.Forget(serve.DenseFolder()) // its 8-bit copy
			checkpoint.ForgetOrdered(checkpoint.MaxOrdered)
			_, err = fmt.Fprintf(cleanWriter{t.Out}, "deleted %s\n", what)
			return err
		},
	}
}

// confirmRemoval asks before rm deletes, unless --yes was given.
func confirmRemoval(t Terminal, yes bool, what, where string) error {
	if yes {
		return nil
	}
	if !isTerminal(t.In) {
		return fail(exitUsage,
			"rm asks before it deletes, and needs a terminal for that. Give --yes")
	}
	agreed, err := askYes(t, fmt.Sprintf("Delete %s from %s? [y/N] ", what, where), false)
	if err == nil && !agreed {
		err = fail(exitFailure, "nothing was deleted")
	}
	return err
}

// removeOrdered deletes the ordered copy of a GGUF file; the file itself stays.
func removeOrdered(t Terminal, name string, source checkpoint.Model, yes bool) error {
	what := fmt.Sprintf("the ordered weights of %s (%s)", name, size(source.Bytes))
	path := source.Ordered()
	if err := confirmRemoval(t, yes, what, filepath.Dir(path)); err != nil {
		return err
	}
	if store.RemoveUnused(path); source.Ordered() != "" {
		return fail(exitFailure, "a running ossrun uses %s: end it and try again", what)
	}
	_, err := fmt.Fprintf(cleanWriter{t.Out}, "deleted %s; the GGUF file stays\n", what)
	return err
}
