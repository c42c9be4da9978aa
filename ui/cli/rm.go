// ossrun rm: deleting a model from the Hugging Face cache.

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
)

func rmCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "delete a model",
		ArgsUsage: "[flags] MODEL",
		Description: "MODEL is written as for pull. Its snapshots go, and every file that no " +
			"other snapshot uses; with a\n" +
			"revision, only that one's. Nothing that a running ossrun reads or fetches is " +
			"deleted. GGUF files and the models\n" +
			"of other programs stay: ossrun only reads them.\n\n" +
			"Example: ossrun rm 20b\n" +
			"         ossrun rm hf:someone/tune@v1 --yes",
		Flags: flagTable(mark("yes", "do not ask"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage,
					"rm needs one MODEL, such as 20b; ossrun list shows what is here")
			}
			name := c.Args().First()
			if found, err := checkpoint.Resolve(name); err == nil && found.GGUF != nil {
				return fail(exitModel, "%s is a GGUF file (%s), which ossrun only reads: delete "+
					"it with the program that keeps it", name, found.Path)
			}
			target, err := models.ParseTarget(name)
			if err != nil {
				related, unknown := errors.AsType[*models.UnknownModelError](err)
				repo, ok := store.ParseRepo(strings.TrimPrefix(name, "hf:"))
				if !unknown || related.Is == "" || !ok {
					return &exitError{exitModel, err.Error()}
				}
				// what cannot be run can still be deleted
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
			what := fmt.Sprintf("%s (%s, %s)", target.Name, count(len(removal.Snapshots),
				"snapshot"), size(removal.Bytes))
			if !c.Bool("yes") && !isTerminal(t.In) {
				return fail(exitUsage,
					"rm asks before it deletes, and nobody is here to answer: give --yes")
			}
			if !c.Bool("yes") {
				agreed, err := yes(t, fmt.Sprintf("Delete %s from %s? [y/N] ", what, root), false)
				if err != nil {
					return err
				}
				if !agreed {
					return fail(exitFailure, "nothing was deleted")
				}
			}
			if err := removal.Run(); err != nil {
				return fail(exitFailure, "deleting %s: %s", target.Name, err)
			}
			q8.Forget(serve.DenseFolder()) // its weights in 8 bits
			_, err = fmt.Fprintf(t.Out, "deleted %s\n", what)
			return err
		},
	}
}
