// ossrun bench serve: clients' latency and throughput on any OpenAI server: ours, vLLM's, ollama's.
//
// It accepts the flags of vLLM's command of that name and of the script of the vLLM 0.10.1
// benchmarks. stdout has only the tables or the JSON.

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/measure/load"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

// benchServeVerb has the flags of ossrun bench serve.
type benchServeVerb struct {
	load                              load.Options
	baseURL, host                     string
	port                              int
	dataset, datasetPath, workload    string
	random                            load.Random
	prompts, shareGPTOutput           int
	disableIgnoreEOS, noBar, noWarmup bool
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
		Name:  "serve",
		Usage: "measure a server: throughput and waiting times",
		Description: "Example: ossrun bench serve --port 8000 --random-input-len 1024 \\\n" +
			"           --random-output-len 1024 --ignore-eos --max-concurrency 64 \\\n" +
			"           --num-prompts 320\n" +
			"         ossrun bench serve --compare ours.json vllm.json --plot both.svg\n\n" +
			"The server is any OpenAI-compatible one. Its key is in OSSRUN_API_KEY or " +
			"VLLM_API_KEY; OPENAI_API_KEY\nis sent to OpenAI, or to the server of " +
			"OPENAI_BASE_URL, only.\n" +
			"The flags of `vllm bench serve` have the same meaning.",
		ArgsUsage: "[flags] [FILE...]",
		Flags:     v.flags(),
		Action:    v.run,
	}
}

func (v *benchServeVerb) flags() []cli.Flag {
	*v = benchServeVerb{host: "127.0.0.1", port: 8000, dataset: "random", prompts: 1000,
		random: load.Random{Input: 1024, Output: 128}, backend: string(load.Completions)}
	v.multiRates, _ = readRange("2,34,2")
	v.load = load.Options{RequestRate: math.Inf(1), Burstiness: 1, Percentiles: []float64{99},
		Extra: map[string]any{}, Metadata: map[string]string{}, Shape: load.Guide}
	o := &v.load
	return flagTable(groupServer,
		enumFlag(&v.backend, "backend", "openai is /v1/completions, openai-chat is "+
			"/v1/chat/completions; vllm, sglang and ossrun are openai", "openai", "openai-chat",
			"vllm", "sglang", "ossrun"),
		serverFlag(&v.baseURL, "base-url", "the server's `URL`, in place of host and port"),
		textFlag(&v.host, "host", "the server's `HOST`"),
		intFlag(&v.port, "port", "the server's port `N`"),
		checkedFlag("endpoint", "", "the route's `PATH`, as vLLM spells it; it chooses the backend",
			"must be /v1/completions or /v1/chat/completions", func(path string) (ok bool) {
				v.route, ok = routes[strings.TrimSuffix(path, "/")]
				return ok
			}),
		textFlag(&o.Model, "model", "`M` as the server names it (default: the first that it "+
			"lists)"),

		groupRequests,
		enumFlag(&v.workload, "workload", "requests of published results: guide is the gpt-oss "+
			"guide's, the others are those of the vLLM 0.10.1 benchmarks, seed is these four one "+
			"after another, beside the published figures", workloadNames()...),
		enumFlag(&v.dataset, "dataset-name", "random words, or sharegpt: a file of conversations",
			"random", "sharegpt"),
		inputFlag(&v.datasetPath, "dataset-path", "the `FILE` of conversations"),
		minFlag(&v.prompts, "num-prompts", 1, "send `N` requests"),
		minFlag(&v.random.Input, "random-input-len", 1, "tokens of a random prompt"),
		minFlag(&v.random.Output, "random-output-len", 1, "tokens to ask for"),
		checkedFlag("random-range-ratio", "0", "draw each length from (1-`R`) to (1+R) times the "+
			"given one; 0 is exact", "must be a number from 0 to below 1", v.readRangeRatio),
		minFlag(&v.random.Prefix, "random-prefix-len", 0, "tokens in front that all prompts share"),
		minFlag(&v.shareGPTOutput, "sharegpt-output-len", 0, "tokens to ask for (default: as many "+
			"as the conversation's answer has)"),
		minFlag(&o.MaxConcurrency, "max-concurrency", 0, "at most `N` requests at once (default: "+
			"no limit)"),
		checkedFlag("request-rate", "inf", "begin `RATE` requests a second, at random times "+
			"(Poisson); inf is all at once", "must be a number above 0 or "+
			"inf", func(s string) bool {
			r, err := strconv.ParseFloat(s, 64)
			o.RequestRate = r
			return err == nil && r > 0
		}),
		boundedFlag(&o.Burstiness, "burstiness", func(b float64) bool { return b > 0 && b <= 1000 },
			"lie above 0", "1 is Poisson, below it arrivals come in bursts"),
		seedFlag(&o.Seed, "of lengths, words and times"),
		switchFlag(&o.IgnoreEOS, "ignore-eos", "generate every token that was asked for"),
		switchFlag(&v.disableIgnoreEOS, "disable-ignore-eos", "let answers of --workload end "+
			"where they end"),
		switchFlag(&o.NoStream, "disable-stream", "ask for answers in one piece"),
		requestMembers(o),
		checkedFlag("extra-request-body", "", "members of every request, as a `JSON` object",
			"must be a JSON object", func(s string) bool {
				return json.Unmarshal([]byte(s), &o.Extra) == nil && o.Extra != nil
			}),
		switchFlag(&v.noWarmup, "disable-warmup", "do not send one request first"),
		switchFlag(&v.multi, "multi", "one run for each rate of --request-rate-range"),
		funcFlag("request-rate-range", "2,34,2", "rates `FROM,TO,STEP`, without TO",
			func(s string) (err error) {
				v.multiRates, err = readRange(s)
				return err
			}),

		groupResult,
		enumFlag((*string)(&o.Shape), "table", "guide is the table of the gpt-oss guide, full "+
			"that of the vLLM 0.10.1 benchmarks", "guide", "full"),
		repeatedFlag("goodput", "count requests that meet `METRIC:MS`, of ttft, tpot and e2el; "+
			"may be given several times", v.readGoals),
		checkedFlag("metric-percentiles", "99", "percentiles `P,...` to report",
			"must be numbers from 0 to 100", v.readPercentiles),
		minFlag(&o.GPUs, "gpus", 0, "the server has `N` GPUs: throughput of each is shown"),
		switchFlag(&v.save, "save-result", "write a JSON file in vLLM's fields"),
		switchFlag(&o.Detailed, "save-detailed", "with every request's times in it"),
		textFlag(&v.resultDir, "result-dir", "the file's `FOLDER`"),
		textFlag(&v.resultFile, "result-filename", "the file's `NAME`"),
		outputFlag(&v.outputFile, "output-file", "append the JSON object to `FILE` as a line"),
		repeatedFlag("metadata", "further `KEY=VALUE` in the file; may be given several times",
			v.readMetadata),
		inputFlag(&v.compare, "compare", "measure nothing: put the runs of `FILE` and of those "+
			"behind it side by side"),
		outputFlag(&v.plot, "plot", "draw latency against throughput of the runs, in the terminal "+
			"and into `FILE.svg`"),
		switchFlag(&v.noBar, "disable-tqdm", "no progress bar"),
		boolFlag("json", "print the JSON object in place of the table"), ignoredBenchFlags())
}

// requestMembers are numbers in every request, by vLLM's names.
func requestMembers(o *load.Options) (list []cli.Flag) {
	for name := range strings.FieldsSeq("temperature top-p top-k min-p frequency-penalty " +
		"presence-penalty repetition-penalty") {
		list = append(list, &cli.Float64Flag{Name: name, Usage: "send `N` with every request",
			Aliases: strings.Fields(shortNames[name]), Category: string(groupRequests),
			Action: func(_ *cli.Context, value float64) error {
				o.Extra[strings.ReplaceAll(name, "-", "_")] = value
				return nil
			}})
	}
	return list
}

var routes = map[string]load.Backend{"": "", "/v1/completions": load.Completions,
	"/v1/chat/completions": load.Chat}

// ignoredBenchFlags have no effect: gpt-oss's vocabulary is used, and every metric is reported.
func ignoredBenchFlags() []cli.Flag {
	return hiddenFlags(vllmFlag{Names: "trust-remote-code", Kind: "switch"},
		vllmFlag{Names: "tokenizer"}, vllmFlag{Names: "tokenizer-mode"},
		vllmFlag{Names: "served-model-name"}, vllmFlag{Names: "percentile-metrics"})
}

func workloadNames() []string {
	return append([]string{"seed"},
		mapSlice(load.Workloads, func(w load.Workload) string { return w.Name })...)
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
	client, err := openPort(c.Context, v.address(), &v.load.Model)
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
	v.load.Warmup = !v.noWarmup
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
		list = []load.Workload{{Dataset: v.dataset, Random: v.random, Prompts: v.prompts,
			Most: v.load.MaxConcurrency}}
	}
	for _, w := range load.Workloads {
		if w.Name == v.workload || v.workload == "seed" && w.Name != "guide" {
			list = append(list, w)
		}
	}
	return list
}

func (v *benchServeVerb) requests(c *cli.Context, w load.Workload) ([]load.Request, error) {
	if c.IsSet("num-prompts") {
		w.Prompts = v.prompts
	}
	if w.Dataset != "sharegpt" {
		return w.Random.Requests(w.Prompts, v.load.Seed), nil
	}
	if v.datasetPath == "" {
		return nil, fail(exitUsage, "sharegpt needs its conversations: --dataset-path FILE")
	}
	list, err := load.ShareGPT(v.datasetPath, w.Prompts, v.shareGPTOutput, v.load.Seed)
	if err != nil {
		return nil, fail(exitUsage, "--dataset-path %s", err)
	}
	return list, nil
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
	if err := v.write(encoded, &o, began); err != nil {
		return none, fail(exitFailure, "save the result: %s", err)
	}
	if result.Completed == 0 {
		return none, fail(exitFailure, "no request succeeded")
	}
	return load.NewSaved(cmp.Or(w.Name, "this run"), encoded)
}

func (v *benchServeVerb) write(encoded []byte, o *load.Options, began time.Time) error {
	if v.outputFile != "" {
		f, err := os.OpenFile(v.outputFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(append(encoded, '\n'))
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if !v.save && v.resultFile == "" {
		return nil
	}
	name := v.resultFile
	if name == "" {
		name = o.BackendName + "-" + load.RateText(o.RequestRate) + "qps-"
		if o.MaxConcurrency > 0 {
			name += fmt.Sprintf("concurrency%d-", o.MaxConcurrency)
		}
		name += path.Base(o.Model) + "-" + began.Format("20060102-150405") + ".json"
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

func (v *benchServeVerb) readPercentiles(s string) bool {
	v.load.Percentiles = nil
	for part := range strings.SplitSeq(s, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return false
		}
		v.load.Percentiles = append(v.load.Percentiles, p)
	}
	return true
}

func (v *benchServeVerb) readMetadata(_ *cli.Context, text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fail(exitUsage, "--metadata must be KEY=VALUE, not %q", text)
	}
	v.load.Metadata[name] = value
	return nil
}

// readRest reads further arguments of --goodput and --metadata, lists in vLLM.
func (v *benchServeVerb) readRest(c *cli.Context) error {
	for _, a := range c.Args().Slice() {
		var err error
		switch {
		case c.IsSet("goodput") && strings.Contains(a, ":"):
			err = v.readGoals(c, a)
		case c.IsSet("metadata") && strings.Contains(a, "="):
			err = v.readMetadata(c, a)
		default:
			return noArguments(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
