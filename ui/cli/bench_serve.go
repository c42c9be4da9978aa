// ossrun bench serve: clients' latency and throughput on any OpenAI server: ours, vLLM's, ollama's.
//
// It accepts the flags of vLLM's command of that name and of the script of the vLLM 0.10.1
// benchmarks. stdout has only the tables or the JSON.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/measure/load"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

type benchServeVerb struct {
	load                              load.Options
	baseURL, host                     string
	port                              int
	workload                          string
	file                              load.File
	random, prefixes                  load.Random
	prompts, output, shareGPTOutput   int
	disableIgnoreEOS, noBar, noWarmup bool
	logprobs, readySeconds            int
	insecure, appendResult, timeline  bool
	header                            map[string]string
	slow                              []float64 // --timeline-itl-thresholds
	goals                             load.Goals
	save, multi                       bool
	resultDir, resultFile, outputFile string
	rates                             []float64
	compare, plot                     string
	silent                            bool // no stdout for a single run
	backend                           string
	route                             load.Backend // "": that of backend
	multiRates                        []float64
}

func benchServeCommand() *cli.Command {
	v := &benchServeVerb{}
	return &cli.Command{
		Name:   "serve",
		Flags:  v.flags(),
		Action: v.run,
	}
}

func (v *benchServeVerb) flags() []cli.Flag {
	*v = benchServeVerb{host: "127.0.0.1", port: 8000, prompts: 1000, output: 128,
		file:   load.File{Format: "random", Trace: load.Trace{ChunkTokens: 16, Multiplier: 1}},
		random: load.Random{Input: 1024}, backend: string(load.Completions),
		prefixes: load.Random{Input: 256, Prefix: 256, Prefixes: 10}, header: map[string]string{},
		slow: []float64{25, 50}}
	v.multiRates, _ = readRange("2,34,2")
	v.load = load.Options{RequestRate: math.Inf(1), Burstiness: 1, Percentiles: []float64{99},
		Extra: map[string]any{}, Metadata: map[string]string{}, Shape: load.Guide, Warmups: 1}
	o := &v.load
	return flagTable(groupServer,
		enumFlag(&v.backend, "backend", "openai", "openai-chat", "vllm", "sglang", "ossrun"),
		serverFlag(&v.baseURL, "base-url"),
		textFlag(&v.host, "host"),
		intFlag(&v.port, "port"),
		checkedFlag("endpoint", "", "must be /v1/completions or /v1/chat/completions",
			func(path string) (ok bool) {
				v.route, ok = routes[strings.TrimSuffix(path, "/")]
				return ok
			}),
		textFlag(&o.Model, "model"),
		repeatedFlag("header", pairs("header", v.header)),
		switchFlag(&v.insecure, "insecure"),
		minFlag(&v.readySeconds, "ready-check-timeout-sec", 0),

		groupRequests,
		enumFlag(&v.workload, "workload", append([]string{"seed"},
			mapSlice(load.Workloads, func(w load.Workload) string { return w.Name })...)...),
		v.datasetFlag(),
		inputFlag(&v.file.Path, "dataset-path"),
		minFlag(&v.prompts, "num-prompts", 1),
		minFlag(&v.random.Input, "random-input-len", 1),
		checkedFlag("random-output-len", "128", "must be a whole number of at least 1",
			v.readOutput),
		checkedFlag("random-range-ratio", "0", "must be a number from 0 to below 1",
			v.readRangeRatio),
		minFlag(&v.random.Prefix, "random-prefix-len", 0),
		minFlag(&v.shareGPTOutput, "sharegpt-output-len", 0),
		v.datasetFlags(),
		minFlag(&o.MaxConcurrency, "max-concurrency", 0),
		checkedFlag("request-rate", "inf", "must be a number above 0 or inf", func(s string) bool {
			r, err := strconv.ParseFloat(s, 64)
			o.RequestRate = r
			return err == nil && r > 0
		}),
		boundedFlag(&o.Burstiness, "burstiness", func(b float64) bool { return b > 0 && b <= 1000 },
			"lie above 0"),
		seedFlag(&o.Seed),
		switchFlag(&o.IgnoreEOS, "ignore-eos"),
		switchFlag(&v.disableIgnoreEOS, "disable-ignore-eos"),
		switchFlag(&o.NoStream, "disable-stream"),
		requestMembers(o),
		minFlag(&v.logprobs, "logprobs", 0),
		jsonFlag("chat-template-kwargs", func(members map[string]any) {
			o.Extra["chat_template_kwargs"] = members
		}),
		textFlag(&o.IDPrefix, "request-id-prefix"),
		repeatedFlag("lora-modules", func(_ *cli.Context, name string) error {
			o.LoRAs = append(o.LoRAs, strings.Fields(name)...)
			return nil
		}),
		choiceFlag("lora-assignment", "random", func(word string) {
			o.LoRAsInTurn = word != "random"
		}, "random", "round-robin"),
		enumFlag(&o.Ramp.Strategy, "ramp-up-strategy", "linear", "exponential"),
		minFlag(&o.Ramp.Start, "ramp-up-start-rps", 1),
		minFlag(&o.Ramp.End, "ramp-up-end-rps", 1),
		jsonFlag("extra-request-body", func(members map[string]any) {
			maps.Copy(o.Extra, members)
		}),
		minFlag(&o.Warmups, "num-warmups", 0),
		switchFlag(&v.noWarmup, "disable-warmup"),
		switchFlag(&v.multi, "multi"),
		funcFlag("request-rate-range", "2,34,2", func(s string) (err error) {
			v.multiRates, err = readRange(s)
			return err
		}),

		groupResult,
		enumFlag((*string)(&o.Shape), "table", "guide", "full"),
		repeatedFlag("goodput", v.readGoals),
		checkedFlag("metric-percentiles", "99", "must be numbers from 0 to 100", v.readPercentiles),
		minFlag(&o.GPUs, "gpus", 0),
		switchFlag(&v.save, "save-result"),
		switchFlag(&o.Detailed, "save-detailed"),
		textFlag(&v.resultDir, "result-dir"),
		textFlag(&v.resultFile, "result-filename"),
		outputFlag(&v.outputFile, "output-file"),
		repeatedFlag("metadata", pairs("metadata", o.Metadata)),
		switchFlag(&v.appendResult, "append-result"),
		textFlag(&o.Label, "label"),
		switchFlag(&v.timeline, "plot-timeline"),
		checkedFlag("timeline-itl-thresholds", "25,50", "must be two numbers such as 25,50",
			func(s string) (ok bool) {
				v.slow, ok = readNumbers(s, 1e9)
				return ok && len(v.slow) == 2
			}),
		inputFlag(&v.compare, "compare"),
		outputFlag(&v.plot, "plot"),
		switchFlag(&v.noBar, "disable-tqdm"),
		boolFlag("json"), ignoredBenchFlags())
}

var routes = map[string]load.Backend{"": "", "/v1/completions": load.Completions,
	"/v1/chat/completions": load.Chat}

// pairs puts KEY=VALUE into a map.
func pairs(flag string, into map[string]string) func(*cli.Context, string) error {
	return func(_ *cli.Context, text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return fail(exitUsage, "--%s must be KEY=VALUE, not %q", flag, text)
		}
		into[name] = value
		return nil
	}
}

// ignoredBenchFlags have no effect: gpt-oss's vocabulary is used, the server has the chat template,
// a file is read whole, and every metric is reported.
func ignoredBenchFlags() []cli.Flag {
	return hiddenFlags(vllmFlag{Names: "trust-remote-code", Kind: "switch"},
		vllmFlag{Names: "tokenizer"}, vllmFlag{Names: "tokenizer-mode"},
		vllmFlag{Names: "served-model-name"}, vllmFlag{Names: "percentile-metrics"},
		vllmFlag{Names: "hf-subset"}, vllmFlag{Names: "hf-split"}, vllmFlag{Names: "hf-name"},
		vllmFlag{Names: "no-stream skip-tokenizer-init skip-chat-template", Kind: "switch"})
}

func (v *benchServeVerb) run(c *cli.Context) error {
	if v.compare != "" {
		return v.comparison(c)
	}
	if err := v.readRest(c); err != nil {
		return err
	}
	if err := v.complete(c); err != nil {
		return err
	}
	plan := v.workloads()
	requests := make([][]load.Request, len(plan))
	var err error
	for i, w := range plan { // before the server is contacted
		if requests[i], err = v.requests(c, w); err != nil {
			return err
		}
	}
	client, err := v.connect(c.Context)
	if err != nil {
		return err
	}
	defer client.Close()
	var saved []load.Saved
	for i, w := range plan {
		for _, rate := range v.rates {
			v.load.RequestRate = rate
			run, err := v.measure(c, client, w, requests[i])
			if err != nil {
				return err
			}
			saved = append(saved, run)
		}
		// figures of a shortened run are not those that were published
		if v.workload == "seed" && !c.Bool("json") && !c.IsSet("num-prompts") {
			runs := append([]load.Saved{saved[len(saved)-1]}, load.Published(w.Name)...)
			if err := load.Compare(c.App.Writer, runs); err != nil {
				return err
			}
		}
	}
	return v.draw(c, saved)
}

// connect returns a client of the server once it answers.
func (v *benchServeVerb) connect(ctx context.Context) (*client.Client, error) {
	return openPort(ctx, v.address(), &v.load.Model, func(port *client.Client) *client.Client {
		for name, value := range v.header {
			port = port.With(name, value)
		}
		if v.insecure {
			port.TrustAny()
		}
		ctx, cancel := context.WithTimeout(ctx, time.Duration(v.readySeconds)*time.Second)
		defer cancel()
		for ctx.Err() == nil {
			if _, err := port.Models(ctx); err == nil {
				break
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		return port
	})
}

// complete sets the options that depend on several flags.
func (v *benchServeVerb) complete(c *cli.Context) error {
	if v.random.RangeRatio >= 1 {
		// in the vLLM 0.10.1 benchmarks 1.0 is the exact length; in vLLM's own command it would
		// draw from 0 to twice the length
		return fail(exitUsage, "--random-range-ratio %s must be below 1, as in vLLM; 0 is exact. "+
			"The script of the vLLM 0.10.1 benchmarks wrote 1.0 for exact: use 0 or --workload",
			c.String("random-range-ratio"))
	}
	v.load.BackendName = v.backend
	v.load.Backend = cmp.Or(v.route, load.Completions)
	if v.route == "" && v.backend == string(load.Chat) {
		v.load.Backend = load.Chat
	}
	if v.workload != "" { // the published runs generated all tokens
		v.load.IgnoreEOS = !v.disableIgnoreEOS
		if !c.IsSet("table") && v.workload != "guide" {
			v.load.Shape = load.Full
		}
	}
	if v.noWarmup {
		v.load.Warmups = 0
	}
	if ramp := v.load.Ramp; ramp.Strategy != "" && (c.IsSet("request-rate") || v.multi ||
		ramp.Start < 1 || ramp.End < ramp.Start) {
		return fail(exitUsage, "--ramp-up-strategy needs --ramp-up-start-rps and a higher "+
			"--ramp-up-end-rps, and no other rate")
	}
	if v.logprobs > 0 {
		v.load.Extra["logprobs"] = v.logprobs
		if v.load.Backend == load.Chat {
			v.load.Extra["logprobs"], v.load.Extra["top_logprobs"] = true, v.logprobs
		}
	}
	v.rates = []float64{v.load.RequestRate}
	if v.multi {
		v.rates = v.multiRates
	}
	return nil
}

func (v *benchServeVerb) address() string {
	if v.baseURL != "" {
		return v.baseURL
	}
	host := v.host
	if host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(v.port))
}

// workloads are the runs to make; given flags override a published workload's.
func (v *benchServeVerb) workloads() []load.Workload {
	var list []load.Workload
	if v.workload == "" {
		v.random.Output, v.prefixes.Output = v.output, v.output
		list = []load.Workload{{Dataset: v.file.Format, Random: v.random, Prompts: v.prompts,
			Most: v.load.MaxConcurrency}}
		if v.file.Format == "prefix_repetition" {
			list[0].Random = v.prefixes
		}
	}
	for _, w := range load.Workloads {
		if w.Name == v.workload || v.workload == "seed" && w.Name != "guide" {
			list = append(list, w)
		}
	}
	return list
}

func (v *benchServeVerb) measure(c *cli.Context, client *client.Client, w load.Workload,
	requests []load.Request) (load.Saved, error) {
	var none load.Saved
	o := v.load
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, w.Most)
	if n := len(requests); n < 5*o.MaxConcurrency && !v.silent {
		fmt.Fprintf(c.App.ErrWriter, "%d requests are few for a steady state at %d at once. The "+
			"gpt-oss guide sends five times as many: --num-prompts %d\n", n, o.MaxConcurrency,
			5*o.MaxConcurrency)
	}
	bar := newCountBar(c, "requests")
	bar.disabled = bar.disabled || v.noBar
	o.Progress = bar.count
	began := time.Now()
	outcomes, took, err := load.Run(c.Context, client, requests, o)
	bar.clear()
	if err != nil && c.Context.Err() == nil {
		return none, err
	}
	interrupted := c.Context.Err() // the first request's error has less clear words
	if interrupted != nil && (outcomes == nil || v.silent) {
		return none, interrupted
	}
	result := load.Measure(outcomes, took, v.goals)
	encoded, err := result.Encode(&o, began, outcomes)
	switch {
	case err != nil:
		return none, err
	case v.silent:
	case c.Bool("json"):
		fmt.Fprintf(c.App.Writer, "%s\n", encoded)
	default:
		err = load.Print(c.App.Writer, &result, &o)
	}
	if interrupted != nil {
		fmt.Fprintf(c.App.ErrWriter, "interrupted: the figures are of %d of %d requests\n",
			result.Completed, len(requests))
	}
	if err = errors.Join(err, interrupted); err != nil {
		return none, err
	}
	if err := v.write(encoded, &o, began, outcomes); err != nil {
		return none, fail(exitFailure, "save the result: %s", err)
	}
	if result.Completed == 0 {
		return none, fail(exitFailure, "no request succeeded")
	}
	return load.NewSaved(cmp.Or(w.Name, "this run"), encoded)
}

func appendLine(file string, line []byte) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(slices.Clip(line), '\n'))
	return errors.Join(err, f.Close())
}

func (v *benchServeVerb) write(encoded []byte, o *load.Options, began time.Time,
	outcomes []load.Outcome) error {
	if v.outputFile != "" {
		if err := appendLine(v.outputFile, encoded); err != nil {
			return err
		}
	}
	if !v.save && !v.appendResult && !v.timeline && v.resultFile == "" {
		return nil
	}
	name := v.resultFile
	if name == "" {
		name = cmp.Or(o.Label, o.BackendName) + "-" + load.RateText(o.RequestRate) + "qps-"
		if o.MaxConcurrency > 0 {
			name += fmt.Sprintf("concurrency%d-", o.MaxConcurrency)
		}
		name += path.Base(o.Model) + "-" + began.Format("20060102-150405") + ".json"
	}
	file := filepath.Join(v.resultDir, name)
	if v.timeline {
		f, err := os.Create(strings.TrimSuffix(file, filepath.Ext(file)) + ".timeline.html")
		if err == nil {
			err = errors.Join(load.Timeline(f, outcomes, v.slow), f.Close())
		}
		if err != nil {
			return err
		}
	}
	if v.appendResult {
		return appendLine(file, encoded)
	}
	if !v.save && v.resultFile == "" {
		return nil
	}
	_, err := writeResult(v.resultDir, name, append(slices.Clip(encoded), '\n'))
	return err
}

func (v *benchServeVerb) comparison(c *cli.Context) error {
	_, saved, err := toCompare(c, v.compare, load.Read)
	if err != nil {
		return err
	}
	runs := slices.Concat(saved...)
	if err := load.Compare(c.App.Writer, runs); err != nil {
		return err
	}
	return v.draw(c, runs)
}

// toCompare reads the files of --compare: its value and the arguments.
func toCompare[T any](c *cli.Context, first string, read func(string) (T, error)) (files []string,
	results []T, err error) {
	files = append([]string{first}, c.Args().Slice()...)
	for _, file := range files {
		r, err := read(file)
		if err != nil {
			return nil, nil, fail(exitUsage, "%s", err)
		}
		results = append(results, r)
	}
	return files, results, nil
}

func (v *benchServeVerb) draw(c *cli.Context, runs []load.Saved) error {
	if v.plot == "" {
		return nil
	}
	p := load.Plot{Runs: runs}
	f, err := os.Create(v.plot)
	if err != nil {
		return fail(exitUsage, "--plot: %s", err)
	}
	if err := errors.Join(p.SVG(f), f.Close()); err != nil {
		return fail(exitFailure, "--plot: %s", err)
	}
	if c.Bool("json") {
		return nil
	}
	return p.Text(c.App.Writer, 60, 16)
}

func (v *benchServeVerb) readRangeRatio(s string) bool {
	r, err := strconv.ParseFloat(s, 64)
	v.random.RangeRatio = r
	return err == nil && r >= 0
}

// readRange reads FROM,TO,STEP; TO is excluded.
func readRange(s string) (list []float64, err error) {
	wrong := fail(exitUsage, "--request-rate-range must be FROM,TO,STEP such as 2,34,2, not %q", s)
	parts := strings.Split(s, ",")
	var n [3]float64
	if len(parts) != len(n) {
		return nil, wrong
	}
	for i, p := range parts {
		if n[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64); err != nil || !(n[i] > 0) {
			return nil, wrong
		}
	}
	for rate := n[0]; rate < n[1] && len(list) < 1000; rate += n[2] {
		list = append(list, rate)
	}
	if len(list) == 0 {
		return nil, wrong
	}
	return list, nil
}

func (v *benchServeVerb) readGoals(_ *cli.Context, text string) error {
	for goal := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(goal, ":")
		ms, err := strconv.ParseFloat(value, 64)
		if err != nil || !(ms > 0) || ms > 1e9 {
			return fail(exitUsage, "--goodput must be METRIC:MILLISECONDS such as ttft:500, not %q",
				goal)
		}
		limit := map[string]*time.Duration{"ttft": &v.goals.TTFT, "tpot": &v.goals.TPOT,
			"e2el": &v.goals.E2EL}[strings.ToLower(name)]
		if limit == nil {
			return fail(exitUsage, "--goodput knows ttft, tpot and e2el, not %q", name)
		}
		*limit = time.Duration(ms * float64(time.Millisecond))
	}
	return nil
}

func (v *benchServeVerb) readPercentiles(s string) (ok bool) {
	v.load.Percentiles, ok = readNumbers(s, 100)
	return ok
}

// readNumbers reads numbers from 0 to most, separated by commas.
func readNumbers(s string, most float64) (list []float64, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(n >= 0 && n <= most) {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// readRest reads further arguments of flags that are lists in vLLM.
func (v *benchServeVerb) readRest(c *cli.Context) error {
	for _, a := range c.Args().Slice() {
		var err error
		switch {
		case c.IsSet("goodput") && strings.Contains(a, ":"):
			err = v.readGoals(c, a)
		case c.IsSet("header") != c.IsSet("metadata") && strings.Contains(a, "="):
			flag, into := "metadata", v.load.Metadata
			if c.IsSet("header") {
				flag, into = "header", v.header
			}
			err = pairs(flag, into)(c, a)
		case c.IsSet("lora-modules") && !strings.Contains(a, "="):
			v.load.LoRAs = append(v.load.LoRAs, a)
		default:
			return noArguments(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
