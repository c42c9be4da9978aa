// The requests of ossrun bench serve: datasets by vLLM's names, and members of every request.
//
// What must stay true: a dataset that a server of text cannot answer is refused with the reason.

package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/measure/load"
)

// textOnly are datasets of vLLM's that are refused, and why.
var textOnly = map[string]string{"random-mm": "images", "custom_image": "images",
	"custom_audio": "audio", "random-rerank": "a model that ranks",
	"speed_bench": "files that only vLLM prepares: give one with --dataset-name custom"}

func (v *benchServeVerb) datasetFlag() cli.Flag {
	words := append([]string{"random", "prefix_repetition"}, load.Formats...)
	f := enumFlag(&v.file.Format, "dataset-name", words...).(*wordFlag)
	check := f.Action
	f.Action = func(c *cli.Context, name string) error {
		if needs := textOnly[strings.ToLower(name)]; needs != "" {
			return fail(exitUsage, "--dataset-name %s needs %s, and gpt-oss reads and writes text",
				name, needs)
		}
		return check(c, name)
	}
	return f
}

// datasetFlags are those of single datasets.
func (v *benchServeVerb) datasetFlags() []cli.Flag {
	p, t := &v.prefixes, &v.file.Trace
	return flagTable(groupRequests,
		minFlag(&p.Prefix, "prefix-repetition-prefix-len", 1),
		minFlag(&p.Input, "prefix-repetition-suffix-len", 1),
		minFlag(&p.Prefixes, "prefix-repetition-num-prefixes", 1),
		textFlag(&v.file.Category, "spec-bench-category"),
		switchFlag(&v.file.NoShuffle, "disable-shuffle"),
		switchFlag(&v.file.NoOversample, "no-oversample"),
		minFlag(&t.ChunkTokens, "timed-trace-chunk-hash-size", 1),
		boundedFlag(&t.Multiplier, "timed-trace-sec-multiplier", func(m float64) bool {
			return m > 0 && m < 1e9
		}, "lie above 0"),
		switchFlag(&t.Untimed, "no-self-timed"),
		hiddenFlags(vllmFlag{Names: "self-timed", Kind: "switch"}),
		labelFlag(&t.Timestamp, "timestamp"), labelFlag(&t.Input, "input_length"),
		labelFlag(&t.Output, "output_length"), labelFlag(&t.Hashes, "hash_ids"))
}

// labelFlag is the name of a member in a trace's lines.
func labelFlag(to *string, name string) cli.Flag {
	*to = name
	return textFlag(to, "timed-trace-label-"+strings.ReplaceAll(name, "_", "-"))
}

func (v *benchServeVerb) requests(c *cli.Context, w load.Workload) ([]load.Request, error) {
	if c.IsSet("num-prompts") {
		w.Prompts = v.prompts
	}
	if !slices.Contains(load.Formats, w.Dataset) {
		if v.output < 1 {
			return nil, fail(exitUsage, "--random-output-len must be at least 1")
		}
		return w.Random.Requests(w.Prompts, v.load.Seed), nil
	}
	file := v.file
	file.Format = w.Dataset
	if c.IsSet("random-output-len") {
		file.Output = v.output
	}
	if w.Dataset == "sharegpt" {
		file.Output = v.shareGPTOutput
	}
	if file.Path == "" {
		return nil, fail(exitUsage, "%s needs its file: --dataset-path FILE", w.Dataset)
	}
	list, err := file.Requests(w.Prompts, v.load.Seed)
	if err != nil {
		return nil, fail(exitUsage, "--dataset-path %s", err)
	}
	return list, nil
}

func (v *benchServeVerb) readOutput(s string) bool {
	n, err := strconv.Atoi(s)
	v.output = n
	return err == nil && (n >= 1 || n == -1)
}

// requestMembers are numbers in every request, by vLLM's names.
func requestMembers(o *load.Options) (list []cli.Flag) {
	for name := range strings.FieldsSeq("temperature top-p top-k min-p frequency-penalty " +
		"presence-penalty repetition-penalty") {
		list = append(list, &cli.Float64Flag{Name: name, Category: string(groupRequests),
			Aliases: strings.Fields(shortNames[name]),
			Action: func(_ *cli.Context, value float64) error {
				o.Extra[strings.ReplaceAll(name, "-", "_")] = value
				return nil
			}})
	}
	return list
}
