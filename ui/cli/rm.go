// ossrun rm: deleting a model from the Hugging Face cache.

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/store"
)

func rmCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "delete a model",
		ArgsUsage: "[flags] MODEL",
		Description: "MODEL is written as for pull. Its snapshots go, and every file that no other snapshot uses; with a\n" +
			"revision, only that one's. Nothing that a running ossrun reads or fetches is deleted. Of a GGUF file or of a\n" +
			"model of another program, a copy that an earlier version converted goes and the file stays.\n\n" +
			"Example: ossrun rm 20b\n" +
			"         ossrun rm hf:someone/tune@v1 --yes\n\n" + exitCodes,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "yes", Usage: "do not ask"}, configFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage, "rm wants one MODEL, such as 20b; ossrun list shows what is here")
			}
			if done, err := removeConverted(c, t); done || err != nil {
				return err
			}
			target, err := models.ParseTarget(c.Args().First())
			if err != nil {
				var related *models.UnknownModelError
				repo, ok := store.ParseRepo(strings.TrimPrefix(c.Args().First(), "hf:"))
				if !errors.As(err, &related) || related.Is == "" || !ok {
					return &exitError{exitModel, err.Error()}
				}
				target = models.Target{Repo: repo, Name: repo.ID()} // what cannot be run can still be deleted
			}
			root, err := store.Root()
			if err != nil {
				return fail(exitFailure, "%s", err)
			}
			removal, err := store.PlanRemoval(root, target.Repo, target.Revision)
			if err != nil {
				return fail(exitFailure, "looking at %s: %s", target.Name, err)
			}
			if removal == nil {
				return fail(exitModel, "%s is not in %s", target.Name, root)
			}
			what := fmt.Sprintf("%s (%s, %s)", target.Name, count(len(removal.Snapshots), "snapshot"), size(removal.Bytes))
			if !c.Bool("yes") {
				if ok, err := agreed(t, "Delete "+what+" from "+root+"?"); err != nil || !ok {
					return err
				}
			}
			if err := removal.Run(); err != nil {
				return fail(exitFailure, "deleting %s: %s", target.Name, err)
			}
			_, err = fmt.Fprintf(t.Out, "deleted %s\n", what)
			return err
		},
	}
}

// removeConverted deletes what an earlier version converted from a GGUF file, never the file; false when the argument names nothing of that kind.
func removeConverted(c *cli.Context, t Terminal) (bool, error) {
	converted, ok, err := models.FindConverted(c.Args().First())
	if err != nil {
		return true, &exitError{exitModel, err.Error()}
	}
	if !ok {
		if found, err := models.Resolve(c.Args().First()); err == nil && found.GGUF != nil {
			return true, fail(exitModel, "%s is a GGUF file (%s), which ossrun only reads: delete it with the program that keeps it", c.Args().First(), found.Path)
		}
		return false, nil
	}
	if !c.Bool("yes") {
		if ok, err := agreed(t, fmt.Sprintf("Delete %s, converted from %s, which stays?", converted.Folder, converted.Source)); err != nil || !ok {
			return true, err
		}
	}
	freed, err := converted.Remove()
	if err != nil {
		return true, fail(exitFailure, "deleting %s: %s", converted.Folder, err)
	}
	_, err = fmt.Fprintf(t.Out, "deleted %s (%s); %s stays\n", converted.Folder, size(freed), converted.Source)
	return true, err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// agreed asks a person.
func agreed(t Terminal, question string) (bool, error) {
	if !isTerminal(t.In) {
		return false, fail(exitUsage, "rm asks before it deletes, and nobody is here to answer: give --yes")
	}
	fmt.Fprintf(t.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(t.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, fail(exitFailure, "nothing was deleted")
}
