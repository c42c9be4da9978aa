// A run as text and as JSON: the table of the gpt-oss guide for vLLM, and that of the vLLM 0.10.1
// benchmarks, line by line, so that scripts written for either read ours; the fields of vLLM's own.

package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

type Shape string

// The tables. Full has backend, rate, input tokens a second and retokenized counts too.
const (
	Guide Shape = "guide"
	Full  Shape = "full"
)

const tableWidth = 50

func Print(w io.Writer, r *Result, o *Options) error {
	t, s := table{percentiles: o.Percentiles}, o.Shape
	t.rule(" Serving Benchmark Result ", "=")
	if s == Full {
		t.value("Backend:", o.backendName())
		t.value("Traffic request rate:", RateText(o.RequestRate))
	}
	t.value("Successful requests:", r.Completed)
	t.value("Benchmark duration (s):", r.Duration)
	t.value("Total input tokens:", r.InputTokens)
	t.value("Total generated tokens:", r.OutputTokens)
	if s == Full {
		t.value("Total generated tokens (retokenized):", r.Retokenized)
	}
	t.value("Request throughput (req/s):", r.RequestsPerS)
	if s == Full {
		t.value("Input token throughput (tok/s):", r.InputPerS)
	}
	t.value("Output token throughput (tok/s):", r.OutputPerS)
	if s == Full {
		t.rule("End-to-End Latency", "-")
		t.value("Mean E2E Latency (ms):", r.E2EL.Mean)
		t.value("Median E2E Latency (ms):", r.E2EL.Median)
	} else {
		t.value("Total Token throughput (tok/s):", r.TotalPerS)
	}
	t.latency("Time to First Token", "TTFT", r.TTFT)
	t.latency("Time per Output Token (excl. 1st token)", "TPOT", r.TPOT)
	t.latency("Inter-token Latency", "ITL", r.ITL)
	if s != Full {
		t.latency("End-to-end Latency", "E2EL", r.E2EL)
	}
	t.line(strings.Repeat("=", tableWidth))
	t.extraRows(r, o.GPUs)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// extraRows adds the figures that neither document has.
func (t *table) extraRows(r *Result, gpus int) {
	if r.GoodPerS != nil {
		t.value("Request goodput (req/s):", *r.GoodPerS)
	}
	t.value("Peak concurrent requests:", r.PeakConcurrency)
	t.value("Peak output throughput (tok/s):", r.PeakOutputPerS)
	if gpus > 0 {
		t.value("Output tok/s per GPU:", r.OutputPerS/float64(gpus))
		t.value("Total tok/s per GPU:", r.TotalPerS/float64(gpus))
	}
	if r.Failed > 0 {
		t.value("Failed requests:", r.Failed)
		t.line("  " + strings.Join(r.failures(), "\n  "))
	}
}

// failures are the messages of failed requests, the most frequent first.
func (r *Result) failures() []string {
	list := slices.SortedFunc(maps.Keys(r.Errors), func(a, b string) int {
		return cmp.Or(r.Errors[b]-r.Errors[a], strings.Compare(a, b))
	})
	for i, text := range list {
		list[i] = fmt.Sprintf("%d times: %s", r.Errors[text], text)
	}
	return list
}

type table struct {
	b           strings.Builder
	percentiles []float64
}

func (t *table) line(s string) { t.b.WriteString(s + "\n") }

// rule is a title in the middle of a line of marks, the shorter half first.
func (t *table) rule(title, mark string) {
	free := tableWidth - len(title)
	t.line(strings.Repeat(mark, free/2) + title + strings.Repeat(mark, free-free/2))
}

// value is a line of a text, a count, or a figure with two decimals.
func (t *table) value(name string, v any) {
	if f, ok := v.(float64); ok {
		v = strconv.FormatFloat(f, 'f', 2, 64)
	}
	t.line(fmt.Sprintf("%-40s %v", name, v))
}

func (t *table) latency(title, name string, l Latency) {
	t.rule(title, "-")
	t.value("Mean "+name+" (ms):", l.Mean)
	t.value("Median "+name+" (ms):", l.Median)
	for _, p := range t.percentiles {
		t.value("P"+percent(p)+" "+name+" (ms):", l.Percentile(p))
	}
}

func percent(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

// RateText is a rate of requests as tables and files of results have it: a number, or inf.
func RateText(rate float64) string {
	if math.IsInf(rate, 1) || rate <= 0 {
		return "inf"
	}
	return percent(rate)
}

// Encode makes the run's JSON object on one line.
func (r *Result) Encode(o *Options, began time.Time, outcomes []Outcome) ([]byte, error) {
	object := map[string]any{}
	for name, value := range o.Metadata {
		object[name] = value
	}
	maps.Copy(object, map[string]any{
		"date": began.Format("20060102-150405"), "endpoint_type": o.Backend,
		"backend": o.backendName(), "label": nil, "rtfx": 0.0, // rtfx is of audio
		"model_id":     o.Model,
		"tokenizer_id": "o200k_harmony", "num_prompts": r.Completed + r.Failed,
		"request_rate": o.RequestRate, "burstiness": o.Burstiness, "max_concurrency": nil,
		"duration": r.Duration, "completed": r.Completed, "failed": r.Failed,
		"total_input_tokens": r.InputTokens, "total_output_tokens": r.OutputTokens,
		"total_output_tokens_retokenized": r.Retokenized,
		"request_throughput":              r.RequestsPerS, "request_goodput": r.GoodPerS,
		"input_throughput": r.InputPerS, "output_throughput": r.OutputPerS,
		"total_token_throughput": r.TotalPerS, "max_output_tokens_per_s": r.PeakOutputPerS,
		"max_concurrent_requests": r.PeakConcurrency,
	})
	if math.IsInf(o.RequestRate, 1) || o.RequestRate <= 0 {
		object["request_rate"] = "inf"
	}
	if o.MaxConcurrency > 0 {
		object["max_concurrency"] = o.MaxConcurrency
	}
	if o.Label != "" {
		object["label"] = o.Label
	}
	if r := o.Ramp; r.Strategy != "" {
		object["ramp_up_strategy"] = r.Strategy
		object["ramp_up_start_rps"], object["ramp_up_end_rps"] = r.Start, r.End
	}
	if o.GPUs > 0 {
		object["num_gpus"] = o.GPUs
	}
	for name, l := range map[string]Latency{"ttft": r.TTFT, "tpot": r.TPOT, "itl": r.ITL,
		"e2el": r.E2EL} {
		object["mean_"+name+"_ms"] = l.Mean
		object["median_"+name+"_ms"] = l.Median
		object["std_"+name+"_ms"] = l.Std
		for _, p := range o.Percentiles {
			object["p"+percent(p)+"_"+name+"_ms"] = l.Percentile(p)
		}
	}
	lists := detail(outcomes, began)
	for _, name := range []string{"latencies", "queue_times"} { // vLLM's files always have these
		object[name] = lists[name]
	}
	if o.Detailed {
		maps.Copy(object, lists)
	}
	return json.Marshal(object)
}

// detail makes lists with an element for each request; times are in seconds, as in vLLM.
func detail(outcomes []Outcome, began time.Time) map[string]any {
	n := len(outcomes)
	inputs, outputs := make([]int, n), make([]int, n)
	ttfts, itls := make([]float64, n), make([][]float64, n)
	latencies, starts, queued := make([]float64, n), make([]float64, n), make([]float64, n)
	texts, errs := make([]string, n), make([]string, n)
	for i, o := range outcomes {
		inputs[i], outputs[i], texts[i] = o.InputTokens, max(o.OutputTokens, 0), o.Text
		ttfts[i], itls[i] = o.TTFT.Seconds(), make([]float64, len(o.Gaps))
		latencies[i], queued[i] = o.Latency.Seconds(), o.Queued.Seconds()
		if !o.Sent.IsZero() {
			starts[i] = o.Sent.Sub(began).Seconds()
		}
		for j, gap := range o.Gaps {
			itls[i][j] = gap.Seconds()
		}
		if o.Err != nil {
			errs[i] = o.Err.Error()
		}
	}
	return map[string]any{"input_lens": inputs, "output_lens": outputs, "ttfts": ttfts,
		"itls": itls, "latencies": latencies, "start_times": starts, "queue_times": queued,
		"generated_texts": texts, "errors": errs}
}
