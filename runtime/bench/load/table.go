// A run as text: the table of the gpt-oss guide for vLLM, and that of the vLLM 0.10.1 benchmarks,
// line by line, so that scripts written for either read ours.

package load

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Shape is a table's.
type Shape string

// The tables. Full is that of the vLLM 0.10.1 benchmarks: backend, rate, input tokens a second and
// retokenized counts too.
const (
	Guide Shape = "guide"
	Full  Shape = "full"
)

const tableWidth = 50

// Print writes a run's table. gpus is how many the server has; 0: not known.
func Print(w io.Writer, r *Result, s Shape, o *Options, percentiles []float64, gpus int) error {
	t := table{}
	t.rule(" Serving Benchmark Result ", "=")
	if s == Full {
		t.text("Backend:", o.backendName())
		t.text("Traffic request rate:", rateText(o.RequestRate))
	}
	t.count("Successful requests:", r.Completed)
	t.value("Benchmark duration (s):", r.Duration)
	t.count("Total input tokens:", r.InputTokens)
	t.count("Total generated tokens:", r.OutputTokens)
	if s == Full {
		t.count("Total generated tokens (retokenized):", r.Retokenized)
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
	t.latency("Time to First Token", "TTFT", r.TTFT, percentiles)
	t.latency("Time per Output Token (excl. 1st token)", "TPOT", r.TPOT, percentiles)
	if s == Full {
		t.latency("Inter-token Latency", "ITL", r.ITL, percentiles)
	} else {
		t.latency("Inter-token Latency", "ITL", r.ITL, percentiles)
		t.latency("End-to-end Latency", "E2EL", r.E2EL, percentiles)
	}
	t.line(strings.Repeat("=", tableWidth))
	t.beyond(r, gpus)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// beyond is what neither document has, behind their table.
func (t *table) beyond(r *Result, gpus int) {
	if r.GoodPerS != nil {
		t.value("Request goodput (req/s):", *r.GoodPerS)
	}
	t.count("Peak concurrent requests:", r.PeakConcurrency)
	t.count("Peak output throughput (tok/s):", r.PeakOutputPerS)
	if gpus > 0 {
		t.value("Output tok/s per GPU:", r.OutputPerS/float64(gpus))
		t.value("Total tok/s per GPU:", r.TotalPerS/float64(gpus))
	}
	if r.Failed > 0 {
		t.count("Failed requests:", r.Failed)
		for _, text := range r.failures() {
			t.line("  " + text)
		}
	}
}

// failures are what failed requests say, the most frequent first.
func (r *Result) failures() []string {
	var list []string
	for text := range r.Errors {
		list = append(list, text)
	}
	slices.SortFunc(list, func(a, b string) int {
		if n := r.Errors[b] - r.Errors[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for i, text := range list {
		list[i] = fmt.Sprintf("%d times: %s", r.Errors[text], text)
	}
	return list
}

type table struct{ b strings.Builder }

func (t *table) line(s string) { t.b.WriteString(s + "\n") }

// rule is a title in the middle of a line of marks, the shorter half in front.
func (t *table) rule(title, mark string) {
	free := tableWidth - len(title)
	t.line(strings.Repeat(mark, free/2) + title + strings.Repeat(mark, free-free/2))
}

func (t *table) text(name, value string)      { t.line(fmt.Sprintf("%-40s %s", name, value)) }
func (t *table) count(name string, n int)     { t.text(name, strconv.Itoa(n)) }
func (t *table) value(name string, v float64) { t.text(name, strconv.FormatFloat(v, 'f', 2, 64)) }
func (t *table) latency(title, name string, l Latency, percentiles []float64) {
	t.rule(title, "-")
	t.value("Mean "+name+" (ms):", l.Mean)
	t.value("Median "+name+" (ms):", l.Median)
	for _, p := range percentiles {
		t.value("P"+percent(p)+" "+name+" (ms):", l.Percentile(p))
	}
}

func percent(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) }

func rateText(rate float64) string {
	if math.IsInf(rate, 1) || rate <= 0 {
		return "inf"
	}
	return strconv.FormatFloat(rate, 'f', -1, 64)
}
