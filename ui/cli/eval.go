// ossrun eval: questions with known answers, tool calls, and harmony faults, on any OpenAI server.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/measure/eval"
	"github.com/ossrun/ossrun/runtime/process"
)

// evalVerb has the flags of ossrun eval.
type evalVerb struct {
	baseURL, api string
	sampler      eval.Sampler
	run          eval.Run
	data, fetch  string
	terminal     Terminal
	examples     int
	k, turns     int
}

func evalCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name: "eval",
		Subcommands: []*cli.Command{
			questionsCommand(t, eval.GPQA, 8), questionsCommand(t, eval.AIME25, 16),
			compatCommand(), faultsCommand(),
		},
		Action: subcommandsOnly("gpqa, aime25, compat and harmony"),
	}
}

func (v *evalVerb) flags() []cli.Flag {
	v.baseURL, v.api = "http://127.0.0.1:8000", string(eval.Responses)
	v.sampler = eval.Sampler{Temperature: 1, MaxTokens: 131072}
	v.run.Threads = 32
	s := &v.sampler
	return flagTable(groupServer,
		serverFlag(&v.baseURL, "base-url"),
		textFlag(&s.Model, "model"),
		groupRequests, temperatureFlag(&s.Temperature),
		minFlag(&s.MaxTokens, "max-tokens", 1),
		minFlag(&v.run.Threads, "n-threads", 1),
		groupResult, boolFlag("json"))
}

func (v *evalVerb) open(c *cli.Context) (err error) {
	v.sampler.API = eval.API(v.api)
	v.sampler.Client, err = openPort(c.Context, v.baseURL, &v.sampler.Model)
	return err
}

func questionsCommand(t Terminal, kind string, attempts int) *cli.Command {
	v := &evalVerb{terminal: t}
	flags := flagTable(v.flags(), groupRequests,
		inputFlag(&v.data, "data"),
		textFlag(&v.fetch, "fetch"),
		checkedFlag("reasoning-effort", "low,medium,high",
			"must be low, medium or high, with commas between", v.readEfforts),
		minFlag(&v.run.Attempts, "attempts", 1),
		minFlag(&v.examples, "examples", 0),
		seedFlag(&v.run.Seed),
		enumFlag(&v.api, "api", "responses", "chat"),
		groupResult, outputFlag(&v.run.Journal, "results"))
	return &cli.Command{Name: kind, Flags: flags,
		Action: func(c *cli.Context) error {
			v.run.Attempts = cmp.Or(v.run.Attempts, attempts)
			if v.run.Efforts == nil {
				v.run.Efforts = []string{"low", "medium", "high"}
			}
			v.run.Eval = kind
			return v.questions(c)
		}}
}

func (v *evalVerb) readEfforts(s string) bool {
	v.run.Efforts = strings.Split(strings.ReplaceAll(strings.ToLower(s), " ", ""), ",")
	return !slices.ContainsFunc(v.run.Efforts, func(e string) bool {
		return e != "low" && e != "medium" && e != "high"
	})
}

func (v *evalVerb) questions(c *cli.Context) error {
	list, err := v.read(c)
	if err != nil {
		return err
	}
	if err := v.open(c); err != nil {
		return err
	}
	defer v.sampler.Client.Close()
	v.run.Questions, v.run.Sampler = list, v.sampler
	bar := newCountBar(c, "attempts")
	v.run.Progress = func(done, total, correct int) {
		bar.note = fmt.Sprintf("%.1f %% right so far", 100*float64(correct)/float64(done))
		bar.count(done, total)
	}
	attempts, err := v.run.Do(c.Context)
	bar.clear()
	scores := eval.Scores(v.run.Efforts, attempts)
	if c.Bool("json") {
		return errors.Join(writeJSON(c.App.Writer, map[string]any{"eval": v.run.Eval,
			"model": v.sampler.Model, "seed": v.run.Seed, "attempts": v.run.Attempts,
			"scores": scores}), err)
	}
	v.print(c, scores)
	failures := map[string]int{}
	for _, a := range attempts {
		if a.Error != "" {
			failures[a.Error]++
		}
	}
	printCounts(c, failures)
	switch {
	case errors.Is(err, context.Canceled) && v.run.Journal != "":
		fmt.Fprintf(c.App.ErrWriter, "interrupted. Run the same command to resume from %s\n",
			v.run.Journal)
	case err == nil && len(failures) > 0:
		return fail(exitFailure, "some attempts have no reply. Run the same command with "+
			"--results to repeat only them")
	}
	return err
}

func (v *evalVerb) read(c *cli.Context) ([]eval.Question, error) {
	var raw []byte
	var err error
	if v.data == "" && v.fetch == "" && isTerminal(v.terminal.In) {
		agreed, err := askYes(v.terminal, "The questions are not shipped. Get them from where "+
			"OpenAI's gpt_oss.evals does ("+eval.Sources[v.run.Eval]+")? [y/N] ", false)
		if err != nil {
			return nil, err
		}
		if agreed {
			v.fetch = "openai"
		}
	}
	if v.fetch == "openai" {
		v.fetch = "curl -sSfL " + eval.Sources[v.run.Eval]
	}
	switch {
	case v.data != "" && v.fetch != "":
		return nil, fail(exitUsage, "--data and --fetch name two sources. Give one")
	case v.data != "":
		raw, err = mapping.ReadText(v.data, mapping.MaxData)
	case v.fetch != "":
		cmd := exec.CommandContext(c.Context, "sh", "-c", v.fetch)
		process.OwnGroup(cmd)
		cmd.Cancel = func() error { return process.Interrupt(cmd) }
		cmd.WaitDelay, cmd.Stderr = 5*time.Second, c.App.ErrWriter
		raw, err = cmd.Output()
	default:
		return nil, fail(exitUsage, "questions are not shipped. Give their file with --data, or "+
			"--fetch openai")
	}
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	list, err := eval.ReadQuestions(v.run.Eval, raw)
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	if v.examples > 0 {
		list = list[:min(v.examples, len(list))]
	}
	return list, nil
}

// print prints the table, with the guide's figures if the model is one of its two.
func (v *evalVerb) print(c *cli.Context, scores []eval.Score) {
	model := ""
	for _, name := range []string{"120b", "20b"} {
		if model == "" && strings.Contains(v.sampler.Model, name) {
			model = name
		}
	}
	t := columns(c.App.Writer)
	fmt.Fprintf(t, "%s, %s\tscore\t95 %%\tguide\tattempts\tno answer\tfailed\ttokens\treasoning\n",
		v.run.Eval, v.sampler.Model)
	for _, s := range scores {
		guide := "-"
		if p, ok := eval.Published[model][v.run.Eval][s.Effort]; ok {
			guide = fmt.Sprintf("%.1f", p)
		}
		fmt.Fprintf(t, "%s\t%.1f\t±%.1f\t%s\t%d\t%d\t%d\t%.0f\t%.0f\n", s.Effort, s.Percent,
			s.HalfWidth, guide, s.Attempts, s.NoAnswer, s.Failed, s.OutputTokens, s.ReasoningTokens)
	}
	_ = t.Flush() // the writer itself never fails
	if model != "" {
		fmt.Fprintln(c.App.Writer, "guide: published in the gpt-oss guide for vLLM, without tools")
	}
	if model == "120b" {
		fmt.Fprintln(c.App.Writer, eval.MLPerf)
	}
}

func printCounts(c *cli.Context, counts map[string]int) {
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(cleanWriter{c.App.ErrWriter}, "  %d x %s\n", counts[text], text)
	}
}

func compatCommand() *cli.Command {
	v := &evalVerb{k: 1}
	return &cli.Command{Name: "compat",
		Flags: flagTable(v.flags(), groupRequests, minFlag(&v.k, "k", 1)),
		Action: func(c *cli.Context) error {
			if err := v.open(c); err != nil {
				return err
			}
			defer v.sampler.Client.Close()
			return v.compat(c)
		}}
}

func (v *evalVerb) compat(c *cli.Context) error {
	bar := newCountBar(c, "runs")
	var rows []eval.CompatRow
	done := 0
	for _, api := range []eval.API{eval.Responses, eval.Chat} {
		for _, stream := range []bool{false, true} {
			s := v.sampler
			s.API = api
			rows = append(rows, eval.Compat(c.Context, s, stream, v.k, v.run.Threads, func() {
				done++
				bar.count(done, 4*v.k*eval.Tasks())
			}))
		}
	}
	bar.clear()
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.Bool("json") {
		return writeJSON(c.App.Writer, map[string]any{"model": v.sampler.Model, "k": v.k,
			"rows": rows})
	}
	t := columns(c.App.Writer)
	fmt.Fprintf(t, "API\tstream\truns\tinvalid\tpass@%d\tpass^%d\n", v.k, v.k)
	why := map[string]int{}
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%v\t%d\t%d\t%.1f %%\t%.1f %%\n", r.API, r.Stream, r.Runs, r.Invalid,
			100*r.PassAtK, 100*r.PassAllK)
		for text, n := range r.Why {
			why[text] += n
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printCounts(c, why)
	return nil
}

func faultsCommand() *cli.Command {
	v := &evalVerb{turns: 1000}
	var stream bool
	return &cli.Command{Name: "harmony",
		Flags: flagTable(v.flags(), groupRequests, minFlag(&v.turns, "turns", 1),
			enumFlag(&v.api, "api", "responses", "chat"),
			switchFlag(&stream, "stream")),
		Action: func(c *cli.Context) error {
			if err := v.open(c); err != nil {
				return err
			}
			defer v.sampler.Client.Close()
			bar := newCountBar(c, "turns")
			done := 0
			f := eval.CountFaults(c.Context, v.sampler, stream, v.turns, v.run.Threads, func() {
				done++
				bar.count(done, v.turns)
			})
			bar.clear()
			if c.Bool("json") {
				return errors.Join(writeJSON(c.App.Writer, f), c.Context.Err())
			}
			fmt.Fprintf(c.App.Writer, "%d of %d turns were faulty: %.1f in 1,000; %d requests had "+
				"no answer\n", f.Faulty, f.Turns, f.PerMille, f.Failed)
			printCounts(c, f.Why)
			return c.Context.Err()
		}}
}
