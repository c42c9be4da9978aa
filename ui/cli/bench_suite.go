// ossrun bench --suite seed: the runs of two published documents, one after another, on a running
// or new server, with the published figures for comparison.
//
// What must stay true: a published figure is labelled so, with its source; a shortened run says so;
// with --output-file a finished run is never repeated.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/measure/load"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
)

type benchSuite struct {
	name, base, conversations, output string
	prompts, gpus                     int
	fraction, lengths                 float64
}

func (b *benchSuite) flags() []cli.Flag {
	b.fraction, b.lengths = 1, 1
	share := func(f float64) bool { return f > 0 && f <= 1 }
	return flagTable(groupSuite,
		checkedFlag("suite", "", "must be seed",
			func(name string) bool {
				b.name = name
				return name == "seed"
			}),
		serverFlag(&b.base, "base-url"),
		inputFlag(&b.conversations, "dataset-path"),
		minFlag(&b.prompts, "num-prompts", 1),
		boundedFlag(&b.fraction, "fraction", share, "lie above 0 and at most at 1"),
		boundedFlag(&b.lengths, "token-fraction", share, "lie above 0 and at most at 1"),
		minFlag(&b.gpus, "gpus", 0),
		outputFlag(&b.output, "output-file"))
}

type suiteRun struct {
	load.Workload
	requests string // number and kind; with the name it identifies a run
	list     []load.Request
	short    bool
}

func (b *benchSuite) runs() (list []suiteRun) {
	part := func(n int, f float64) int { return int(math.Ceil(float64(n) * f)) }
	for _, w := range load.Workloads {
		published := w
		w.Prompts = part(w.Prompts, b.fraction)
		if b.prompts > 0 {
			w.Prompts = b.prompts
		}
		w.Random.Input, w.Random.Output = part(w.Random.Input, b.lengths),
			part(w.Random.Output, b.lengths)
		r := suiteRun{Workload: w, short: w != published,
			requests: fmt.Sprintf("%d requests", w.Prompts)}
		if w.Dataset == "random" {
			r.requests += fmt.Sprintf(" of %d + %d tokens", w.Random.Input, w.Random.Output)
		}
		if w.Most > 0 {
			r.requests += fmt.Sprintf(", %d at once", w.Most)
		}
		list = append(list, r)
	}
	return list
}

func (b *benchSuite) skips(r suiteRun) bool {
	return r.Dataset == "sharegpt" && b.conversations == ""
}

// suiteResult is a run with the published figures, for --json.
type suiteResult struct {
	Workload  string             `json:"workload"`
	Requests  string             `json:"requests"`
	Shortened bool               `json:"shortened"`
	Skipped   string             `json:"skipped,omitempty"` // why
	Ours      map[string]float64 `json:"ours,omitempty"`
	Published []load.Saved       `json:"published,omitempty"`
}

// run makes the suite's runs. model is the one to ask for, "" for the server's first.
func (b *benchSuite) run(c *cli.Context, t Terminal, model string) error {
	v, plan := &benchServeVerb{}, b.runs()
	v.flags() // sets defaults
	v.file.Path, v.outputFile, v.load.GPUs, v.silent = b.conversations, b.output, b.gpus, true
	v.load.Backend, v.load.IgnoreEOS = load.Completions, true
	v.prompts = b.prompts
	v.load.Warmups, v.load.Seed = 1, 1 // like the published runs
	for i, r := range plan {
		var err error
		if b.skips(r) {
			continue
		}
		if plan[i].list, err = v.requests(c, r.Workload); err != nil {
			return err
		}
	}
	running, err := local.Running(c.Context)
	if err != nil {
		return err
	}
	needed := local.ServerFinder{Caller: "bench", Model: model, MayStart: true, Report: notify(t),
		Fetch: fetchNamed(c, t, nil)}
	address, stop, err := needed.Find(c.Context, b.base)
	if err != nil {
		return err
	}
	defer stop()
	if b.base == "" && len(running) == 0 {
		model = "" // the new server has it, under any name
	}
	client, err := openPort(c.Context, address, &model)
	if err != nil {
		return err
	}
	defer client.Close()
	v.load.Model = model
	if !c.Bool("json") {
		fmt.Fprintf(cleanWriter{c.App.Writer}, "model %s at %s\npublished figures: %s\n", model,
			address, load.PublishedSource)
	}
	results, failed := []suiteResult{}, 0
	for _, r := range plan {
		result, err := b.runOne(c, v, client, r)
		if errors.Is(err, context.Canceled) {
			hint := "Run the same command to resume after the runs in " + b.output
			if b.output == "" {
				hint = "With --output-file the suite can be resumed"
			}
			fmt.Fprintln(t.Err, "interrupted. "+hint)
			return err
		}
		if err != nil {
			t.report("%s: %s", r.Name, err)
			result.Skipped, failed = err.Error(), failed+1
		}
		results = append(results, result)
	}
	if c.Bool("json") {
		if err := writeJSON(c.App.Writer, map[string]any{"suite": b.name, "model": model,
			"runs": results}); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fail(exitFailure, "failed runs of the suite: %d", failed)
	}
	return nil
}

// runOne makes a run, or takes it from the file, and prints it.
func (b *benchSuite) runOne(c *cli.Context, v *benchServeVerb, client *client.Client,
	r suiteRun) (result suiteResult, err error) {
	result = suiteResult{Workload: r.Name, Requests: r.requests, Shortened: r.short}
	out := textOutput(c)
	fmt.Fprintf(out, "\n%s: %s\n", r.Name, r.requests)
	if r.short {
		fmt.Fprintln(out, "shortened: not to be compared with the published figures")
	}
	if b.skips(r) {
		result.Skipped = "it needs the conversations: --dataset-path FILE"
		fmt.Fprintf(out, "skipped: %s\n", result.Skipped)
		return result, nil
	}
	v.load.Metadata = map[string]string{"suite": b.name, "workload": r.Name, "requests": r.requests}
	run, ok, err := b.saved(v.load.Model, r)
	if err != nil {
		return result, err
	}
	if ok {
		fmt.Fprintf(out, "taken from %s\n", b.output)
	} else if run, err = v.measure(c, client, r.Workload, r.list); err != nil {
		return result, err
	}
	run.Name = "ours"
	result.Ours = run.Figures
	if result.Published = load.Published(r.Name); len(result.Published) == 0 {
		fmt.Fprintln(out, "the guide publishes no figures of this run")
	}
	runs := []load.Saved{run}
	if !r.short { // a ratio would compare different work
		runs = append(runs, result.Published...)
	}
	return result, load.Compare(out, runs)
}

func (b *benchSuite) saved(model string, r suiteRun) (s load.Saved, ok bool, err error) {
	if b.output == "" {
		return s, false, nil
	}
	text, err := mapping.ReadText(b.output, mapping.MaxData)
	if errors.Is(err, os.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	for line := range bytes.Lines(text) {
		var about struct {
			Suite, Workload, Requests string
			Model                     string `json:"model_id"`
		}
		if json.Unmarshal(line, &about) != nil || about.Suite != b.name ||
			about.Workload != r.Name || about.Requests != r.requests || about.Model != model {
			continue // truncated, or another run
		}
		s, err = load.NewSaved("ours", line)
		return s, err == nil && s.Figures["completed"] > 0, nil
	}
	return s, false, nil
}
