// ossrun list: every gpt-oss in the Hugging Face cache and in other programs' folders, complete or
// not, and whether it fits this machine; ossrun show: details of one.

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/serve"
)

type listedModel struct {
	Name     string `json:"name"`       // for --model
	Repo     string `json:"repository"` // "": built in
	Revision string `json:"revision"`   // the commit
	// the repository's main pointed to it at the last fetch
	Main     bool   `json:"main"`
	Where    string `json:"where"`    // a folder
	Bytes    int64  `json:"bytes"`    // size of the stored weights
	Complete bool   `json:"complete"` // by the weights' headers
	Fits     bool   `json:"fits"`     // whether they fit the free memory
	// whose release they are: verified, pulled, other or unverified
	Weights checkpoint.Verification `json:"weights,omitempty"`
	// size of the whole, where the catalogue knows it and it is not complete
	Download int64  `json:"download,omitempty"`
	Program  string `json:"program,omitempty"` // the other program that has it, as a GGUF file
	Note     string `json:"note,omitempty"`
	// description from its files, and their settings that are not followed
	About string   `json:"about,omitempty"`
	Asks  []string `json:"asks,omitempty"`
}

// inspect adds the description of the files at Where.
func (r *listedModel) inspect() {
	if about, err := checkpoint.Describe(r.Where); err == nil {
		r.About, r.Asks = about.String(), serve.Notes(about.ChatDefaults)
	}
}

func listCommand() *cli.Command {
	return &cli.Command{
		Name:    "list",
		Aliases: []string{"models"},
		Flags: flagTable(boolFlag("long"),
			boolFlag("json"), configFlag()),
		Action: func(c *cli.Context) error {
			rows, err := listModels(c.App.ErrWriter)
			if err != nil {
				return fail(exitFailure, "reading the cache: %s", err)
			}
			if c.Bool("json") {
				return json.NewEncoder(c.App.Writer).Encode(rows)
			}
			var out strings.Builder
			w := columns(&out)
			long := c.Bool("long")
			head := "MODEL\tSIZE\tSTATUS"
			if long {
				head += "\tFITS\tREVISION\tWEIGHTS\tWHERE"
			}
			fmt.Fprintln(w, head)
			for _, r := range rows {
				fmt.Fprintf(w, "%s\t%s\t%s", r.Name, size(r.Bytes), r.state())
				if long {
					fmt.Fprintf(w, "\t%s\t%s\t%s\t%s", yesNo[r.Fits], r.revision(),
						cmp.Or(r.Weights, "-"), r.Where)
				}
				fmt.Fprintln(w)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, r := range rows {
				_, isCatalogue := models.Lookup(r.Name) // catalogue models need no description
				if isCatalogue && !long {
					r.About = ""
				}
				for _, line := range []string{r.Note, r.About} {
					if line != "" {
						fmt.Fprintf(cleanWriter{&out}, "%s: %s\n", r.Name, line)
					}
				}
			}
			if err := listAvailable(w, rows); err != nil {
				return err
			}
			text := out.String()
			if isTerminal(c.App.Writer) {
				text = styled(c.App.Writer, foldLines(text, widthOf(c.App.Writer)))
			}
			_, err = io.WriteString(c.App.Writer, text)
			return err
		},
	}
}

// listAvailable shows the catalogue's other models, with the command that downloads each.
func listAvailable(w *tabwriter.Writer, rows []listedModel) error {
	fmt.Fprint(w, "\nNot installed:\n")
	for _, e := range models.Catalogue() {
		if !slices.ContainsFunc(rows, func(r listedModel) bool { return r.Name == e.ID }) {
			fmt.Fprintf(w, "  ossrun pull %s\t%s\n", e.ID, size(e.DownloadBytes))
		}
	}
	return w.Flush()
}

// listModels collects the rows: snapshots of the cache, models of other programs, then the demo.
func listModels(notices io.Writer) ([]listedModel, error) {
	stored, err := checkpoint.Inventory()
	if err = skipDefault(notices, err); err != nil {
		return nil, err
	}
	demo, err := checkpoint.Resolve(models.Demo)
	if err != nil {
		return nil, err
	}
	_, free, err := serve.HostMemory()
	if err != nil {
		return nil, err
	}
	root, err := store.Root()
	if err != nil {
		return nil, err
	}
	rows := []listedModel{}
	for _, s := range stored {
		row := listedModel{Name: cmp.Or(s.ID, "hf:"+s.Repo), Repo: s.Repo, Revision: s.Commit,
			Main: s.Main, Where: s.Path, Bytes: s.Bytes,
			Complete: s.Complete, Fits: s.Bytes < free, Note: s.Note}
		if s.Complete {
			row.Weights = s.Verification()
			row.inspect()
		}
		if repo, ok := store.ParseRepo(s.Repo); ok && !s.Complete { // the size that rm would free
			partial, err := store.PlanRemoval(root, repo, s.Commit)
			if err != nil {
				return nil, err
			}
			if partial != nil { // nil: just deleted
				row.Bytes = partial.Bytes
			}
		}
		if e, ok := models.Lookup(s.Repo); ok && !s.Complete {
			row.Download, row.Fits = e.DownloadBytes, e.DownloadBytes < free
		}
		rows = append(rows, row)
	}
	for _, e := range checkpoint.ListForeign() {
		row := listedModel{Name: e.Name, Where: e.Path, Bytes: e.Bytes, Program: e.Program}
		if e.Model == nil {
			row.Note = "cannot be used: " + e.Trouble.Error()
		} else {
			row.Complete, row.Fits = true, e.Model.Bytes < free
		}
		row.inspect()
		rows = append(rows, row)
	}
	return append(rows, listedModel{Name: demo.ID, Where: "built in", Bytes: demo.Bytes,
		Complete: true, Fits: true}), nil
}

// state is the model's state for people, with the remedy.
func (r listedModel) state() string {
	switch {
	case r.Program != "" && r.Complete:
		return "GGUF of " + r.Program
	case r.Program != "":
		return "cannot be used"
	case r.Download > 0:
		return fmt.Sprintf("%d %%, run: ossrun pull %s", min(100*r.Bytes/r.Download, 99), r.Name)
	case !r.Complete:
		return "incomplete, run: ossrun pull " + r.Name
	}
	state := "ready"
	if r.Repo == "" {
		state = "built in"
	}
	if !r.Fits {
		state += ", larger than the free memory"
	}
	return state
}

func (r listedModel) revision() string {
	short := r.Revision[:min(7, len(r.Revision))]
	if r.Main && short != "" {
		short += " (main)"
	}
	return cmp.Or(short, "-")
}

func showCommand() *cli.Command {
	return &cli.Command{
		Name:  "show",
		Flags: flagTable(boolFlag("json"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage, "show needs one MODEL, such as 20b. Run ossrun list")
			}
			return showModel(c, c.Args().First())
		},
	}
}

type shownModel struct {
	Name      string        `json:"name"`
	HF        string        `json:"repository,omitempty"`
	Layers    int           `json:"layers,omitempty"`
	Experts   int           `json:"experts,omitempty"`
	Context   int           `json:"context,omitempty"` // tokens
	Bytes     int64         `json:"download,omitempty"`
	Installed []listedModel `json:"here"`
}

type shownFiles struct {
	Name string `json:"name"`
	Path string `json:"path"`
	checkpoint.About
	Asks []string `json:"asks,omitempty"`
}

func showFiles(c *cli.Context, path string) error {
	about, err := checkpoint.Describe(path)
	if err != nil {
		return &exitError{exitModel, err.Error()}
	}
	files := shownFiles{Name: importName(path, path), Path: path, About: about,
		Asks: serve.Notes(about.ChatDefaults)}
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(files)
	}
	w := columns(c.App.Writer)
	to := &report{Writer: w}
	to.row("model", "%s", files.Name)
	to.row("files", "%s", about)
	for _, line := range files.Asks {
		to.row("note", "%s", line)
	}
	command := "ossrun chat --model "
	if strings.HasPrefix(about.Kind, "LoRA") {
		command = "with its base model: --lora "
	}
	to.row("runs", "%s", cmp.Or(about.Trouble, command+shellPath(path)))
	return w.Flush()
}

func showModel(c *cli.Context, name string) error {
	if _, err := os.Stat(name); err == nil {
		if _, isCatalogue := models.Lookup(name); !isCatalogue {
			return showFiles(c, name)
		}
	}
	rows, err := listModels(c.App.ErrWriter)
	if err != nil {
		return fail(exitFailure, "reading the cache: %s", err)
	}
	model := shownModel{Name: name, Installed: []listedModel{}}
	entry, isCatalogue := models.Lookup(name)
	if isCatalogue {
		model.Name, model.HF, model.Bytes = entry.Spec.Name, entry.HF, entry.DownloadBytes
		model.Layers, model.Experts = entry.Spec.Layers, entry.Spec.Experts
		model.Context = entry.Spec.MaxPosition
	}
	for _, r := range rows {
		same := strings.EqualFold(r.Name, name) || strings.EqualFold("hf:"+r.Repo, name)
		if isCatalogue {
			same = r.Name == entry.ID || r.Repo != "" && r.Repo == entry.HF
		}
		if same {
			model.Installed = append(model.Installed, r)
		}
	}
	if !isCatalogue && len(model.Installed) == 0 {
		source, err := checkpoint.Resolve(name)
		switch {
		case err == nil:
			return showFiles(c, source.Path)
		case isError[*checkpoint.NotCachedError](err):
			err = fmt.Errorf("%s is not downloaded. Run ossrun pull %[1]s", name)
		}
		return &exitError{exitModel, err.Error()}
	}
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(model)
	}
	return model.print(c)
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
	for _, r := range m.Installed {
		fits := "fits the free memory"
		if !r.Fits {
			fits = "does not fit the free memory"
		}
		row("files", "%s, %s, %s, revision %s, %s", r.state(), size(r.Bytes), fits, r.revision(),
			r.Where)
		for _, line := range append([]string{r.Note}, r.Asks...) {
			if line != "" {
				row("note", "%s", line)
			}
		}
		if r.About != "" {
			row("files", "%s", r.About)
		}
	}
	if len(m.Installed) == 0 {
		row("files", "not downloaded. Run ossrun pull %s", m.Name)
	}
	return w.Flush()
}
