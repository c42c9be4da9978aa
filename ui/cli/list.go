// ossrun list: every gpt-oss in the Hugging Face cache and in the folders of other programs,
// whether it is complete, and whether it fits this machine.

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/serve"
)

type listedModel struct {
	Name     string `json:"name"`       // what --model takes
	Repo     string `json:"repository"` // "" for what is built in
	Revision string `json:"revision"`   // the commit
	// it is what the repository's main was when it was last fetched
	Main     bool   `json:"main"`
	Where    string `json:"where"`    // a folder
	Bytes    int64  `json:"bytes"`    // size of the weights that are there
	Complete bool   `json:"complete"` // by the weights' headers
	Fits     bool   `json:"fits"`     // weights against the memory that is free now
	// size of the whole, where the catalogue knows it and it is not complete
	Download int64  `json:"download,omitempty"`
	Program  string `json:"program,omitempty"` // which other program keeps it, as a GGUF file
	Note     string `json:"note,omitempty"`
}

func listCommand() *cli.Command {
	return &cli.Command{
		Name:        "list",
		Usage:       "show the models on this machine",
		Description: "Example: ossrun list --json",
		Flags:       flagTable(mark("json", "as a JSON array"), configFlag()),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			rows, err := listed()
			if err != nil {
				return fail(exitFailure, "reading the cache: %s", err)
			}
			if c.Bool("json") {
				return json.NewEncoder(c.App.Writer).Encode(rows)
			}
			w := columns(c.App.Writer)
			fmt.Fprintln(w, "MODEL\tSIZE\tSTATE\tFITS\tREVISION\tWHERE")
			for _, r := range rows {
				fits := "yes"
				if !r.Fits {
					fits = "no"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, size(r.Bytes), r.state(), fits,
					r.revision(), r.Where)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, r := range rows {
				if r.Note != "" {
					fmt.Fprintf(c.App.Writer, "%s: %s\n", r.Name, r.Note)
				}
			}
			return nil
		},
	}
}

// listed gathers the rows: the cache's snapshots, what other programs keep, then the demo.
func listed() ([]listedModel, error) {
	stored, err := checkpoint.Inventory()
	if err != nil {
		return nil, err
	}
	demo, err := checkpoint.Resolve(models.Demo)
	if err != nil {
		return nil, err
	}
	free, err := serve.FreeMemory()
	if err != nil {
		return nil, err
	}
	rows := []listedModel{}
	for _, s := range stored {
		row := listedModel{Name: s.ID, Repo: s.Repo, Revision: s.Commit, Main: s.Main,
			Where: s.Path, Bytes: s.Bytes,
			Complete: s.Complete, Fits: s.Bytes < free, Note: s.Note}
		if row.Name == "" {
			row.Name = "hf:" + s.Repo
		}
		if e, ok := models.Lookup(s.Repo); ok && !s.Complete {
			row.Download, row.Fits = e.DownloadBytes, e.DownloadBytes < free
		}
		rows = append(rows, row)
	}
	rows = append(rows, listedElsewhere(free)...)
	return append(rows, listedModel{Name: demo.ID, Where: "built in", Bytes: demo.Bytes,
		Complete: true, Fits: true}), nil
}

// listedElsewhere gathers the GGUF files of other programs.
func listedElsewhere(free int64) (rows []listedModel) {
	for _, e := range checkpoint.ListElsewhere() {
		row := listedModel{Name: e.Name, Where: e.Path, Bytes: e.Bytes, Program: e.Program}
		if e.Model == nil {
			row.Note = "cannot be used: " + e.Trouble.Error()
		} else {
			row.Complete, row.Fits = true, e.Model.Bytes < free
		}
		rows = append(rows, row)
	}
	return rows
}

// state says how much of a model is here.
func (r listedModel) state() string {
	switch {
	case r.Program != "" && r.Complete:
		return "GGUF of " + r.Program
	case r.Program != "":
		return "cannot be used"
	case r.Complete:
		return "complete"
	case r.Download > 0:
		return "incomplete, of " + size(r.Download)
	}
	return "incomplete"
}

func (r listedModel) revision() string {
	switch {
	case r.Revision == "":
		return "-"
	case r.Main:
		return r.Revision[:min(7, len(r.Revision))] + " (main)"
	}
	return r.Revision[:min(7, len(r.Revision))]
}
