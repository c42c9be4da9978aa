// ossrun show: what is known of one model, in the catalogue and on this machine.

package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
)

func showCommand() *cli.Command {
	return &cli.Command{
		Name:        "show",
		Usage:       "show one model: its shape, and what of it is here",
		ArgsUsage:   "[flags] MODEL",
		Description: "Example: ossrun show 20b",
		Flags:       flagTable(mark("json", "as one JSON object"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage,
					"show needs one MODEL, such as 20b; ossrun list shows what is here")
			}
			return showModel(c, c.Args().First())
		},
	}
}

// shownModel is what show --json prints.
type shownModel struct {
	Name    string        `json:"name"`
	HF      string        `json:"repository,omitempty"`
	Layers  int           `json:"layers,omitempty"`
	Experts int           `json:"experts,omitempty"`
	Context int           `json:"context,omitempty"` // tokens
	Bytes   int64         `json:"download,omitempty"`
	Here    []listedModel `json:"here"`
}

func showModel(c *cli.Context, name string) error {
	rows, err := listed()
	if err != nil {
		return fail(exitFailure, "reading the cache: %s", err)
	}
	shown := shownModel{Name: name, Here: []listedModel{}}
	entry, known := models.Lookup(name)
	if known {
		shown.Name, shown.HF, shown.Bytes = entry.Spec.Name, entry.HF, entry.DownloadBytes
		shown.Layers, shown.Experts = entry.Spec.Layers, entry.Spec.Experts
		shown.Context = entry.Spec.MaxPosition
	}
	for _, r := range rows {
		same := strings.EqualFold(r.Name, name) || strings.EqualFold("hf:"+r.Repo, name)
		if known {
			same = r.Name == entry.ID || r.Repo != "" && r.Repo == entry.HF
		}
		if same {
			shown.Here = append(shown.Here, r)
		}
	}
	if !known && len(shown.Here) == 0 {
		_, err := models.ParseTarget(name)
		if err == nil {
			err = fmt.Errorf("%s is not on this machine; ossrun pull %[1]s fetches it", name)
		}
		return &exitError{exitModel, err.Error()}
	}
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(shown)
	}
	return shown.print(c)
}

func (m shownModel) print(c *cli.Context) error {
	w := columns(c.App.Writer)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("model", "%s", m.Name)
	if m.HF != "" {
		row("repository", "%s", m.HF)
	}
	if m.Layers > 0 {
		row("shape", "%d layers, %d experts, context of %d tokens", m.Layers, m.Experts, m.Context)
	}
	if m.Bytes > 0 {
		row("download", "%s", size(m.Bytes))
	}
	for _, r := range m.Here {
		fits := "fits the free memory"
		if !r.Fits {
			fits = "does not fit the free memory"
		}
		row("here", "%s, %s, %s, revision %s, %s", r.state(), size(r.Bytes), fits, r.revision(),
			r.Where)
	}
	if len(m.Here) == 0 {
		row("here", "no; ossrun pull %s fetches it", m.Name)
	}
	return w.Flush()
}
