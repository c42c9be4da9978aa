// ossrun list: what of the catalogue is on this machine, and whether it fits.

package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
)

type listedModel struct {
	Name     string `json:"name"`
	Where    string `json:"where"`
	Bytes    int64  `json:"bytes"`
	Complete bool   `json:"complete"`
	Fits     bool   `json:"fits"`
}

func listCommand() *cli.Command {
	return &cli.Command{
		Name:        "list",
		Usage:       "show the models on this machine",
		Description: "Example: ossrun list --json\n\n" + exitCodes,
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "as a JSON array"}, configFlag()},
		Action: func(c *cli.Context) error {
			found, err := models.Cached()
			if err != nil {
				return fail(exitFailure, "reading the cache: %s", err)
			}
			demo, err := models.Resolve("demo")
			if err != nil {
				return err
			}
			dev, err := cpu.New(1)
			if err != nil {
				return fail(exitFailure, "%s", err)
			}
			_, free := dev.Memory()
			if err := dev.Close(); err != nil {
				return fail(exitFailure, "%s", err)
			}
			rows := []listedModel{}
			for _, f := range append(found, demo) {
				row := listedModel{Name: f.ID, Where: f.Path, Bytes: f.Bytes, Complete: f.Complete, Fits: f.Bytes < free}
				if f.Demo {
					row.Where, row.Complete, row.Fits = "built in", true, true
				}
				rows = append(rows, row)
			}
			if c.Bool("json") {
				return json.NewEncoder(c.App.Writer).Encode(rows)
			}
			w := tabwriter.NewWriter(c.App.Writer, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "MODEL\tSIZE\tSTATE\tFITS\tWHERE")
			for _, r := range rows {
				state, fits := "complete", "yes"
				if !r.Complete {
					state = "incomplete"
				}
				if !r.Fits {
					fits = "no"
				}
				fmt.Fprintf(w, "%s\t%.1f GB\t%s\t%s\t%s\n", r.Name, float64(r.Bytes)/1e9, state, fits, r.Where)
			}
			return w.Flush()
		},
	}
}
