package load

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// some is a result with numbers that are easy to follow: requests of 1 and 3 s.
func some() (Result, []Outcome) {
	start := time.Now()
	ms := time.Millisecond
	outcomes := []Outcome{
		{InputTokens: 10, OutputTokens: 3, Sent: start, TTFT: 500 * ms,
			Gaps: []time.Duration{200 * ms, 300 * ms}, Latency: 1000 * ms, Text: " a b c"},
		{InputTokens: 20, OutputTokens: 5, Sent: start, TTFT: 1000 * ms,
			Gaps: []time.Duration{500 * ms, 500 * ms, 500 * ms, 500 * ms}, Latency: 3000 * ms,
			Text: " a b c d"},
	}
	return Measure(outcomes, 4*time.Second, Goals{TTFT: 600 * ms}), outcomes
}

const guideTable = `============ Serving Benchmark Result ============
Successful requests:                     2
Benchmark duration (s):                  4.00
Total input tokens:                      30
Total generated tokens:                  8
Request throughput (req/s):              0.50
Output token throughput (tok/s):         2.00
Total Token throughput (tok/s):          9.50
---------------Time to First Token----------------
Mean TTFT (ms):                          750.00
Median TTFT (ms):                        750.00
P99 TTFT (ms):                           995.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          375.00
Median TPOT (ms):                        375.00
P99 TPOT (ms):                           497.50
---------------Inter-token Latency----------------
Mean ITL (ms):                           416.67
Median ITL (ms):                         500.00
P99 ITL (ms):                            500.00
----------------End-to-end Latency----------------
Mean E2EL (ms):                          2000.00
Median E2EL (ms):                        2000.00
P99 E2EL (ms):                           2980.00
==================================================
`

const fullTable = `============ Serving Benchmark Result ============
Backend:                                 openai
Traffic request rate:                    inf
Successful requests:                     2
Benchmark duration (s):                  4.00
Total input tokens:                      30
Total generated tokens:                  8
Total generated tokens (retokenized):    7
Request throughput (req/s):              0.50
Input token throughput (tok/s):          7.50
Output token throughput (tok/s):         2.00
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   2000.00
Median E2E Latency (ms):                 2000.00
---------------Time to First Token----------------
Mean TTFT (ms):                          750.00
Median TTFT (ms):                        750.00
P99 TTFT (ms):                           995.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          375.00
Median TPOT (ms):                        375.00
P99 TPOT (ms):                           497.50
---------------Inter-token Latency----------------
Mean ITL (ms):                           416.67
Median ITL (ms):                         500.00
P99 ITL (ms):                            500.00
==================================================
`

func TestTables(t *testing.T) {
	r, _ := some()
	o := everything()
	for shape, want := range map[Shape]string{Guide: guideTable, Full: fullTable} {
		var b strings.Builder
		o.Shape, o.Percentiles, o.GPUs = shape, []float64{99}, 2
		hosttest.Check(t, Print(&b, &r, &o))
		got, ok := strings.CutPrefix(b.String(), want)
		if !ok {
			t.Errorf("%s:\n%s\nnot\n%s", shape, b.String(), want)
		}
		if !strings.Contains(got, "Request goodput (req/s):                 0.25\n") ||
			!strings.Contains(got, "Output tok/s per GPU:                    1.00\n") ||
			!strings.Contains(got, "Peak concurrent requests:                2\n") {
			t.Errorf("behind the table:\n%s", got)
		}
	}
}

// The names that scripts for vLLM's files read.
var vllmFields = strings.Fields(`date endpoint_type backend label model_id tokenizer_id num_prompts
	request_rate burstiness max_concurrency duration completed total_input_tokens
	total_output_tokens request_throughput request_goodput output_throughput total_token_throughput
	max_output_tokens_per_s max_concurrent_requests
	mean_ttft_ms median_ttft_ms std_ttft_ms p99_ttft_ms mean_tpot_ms median_tpot_ms std_tpot_ms
	p99_tpot_ms mean_itl_ms median_itl_ms std_itl_ms p99_itl_ms mean_e2el_ms median_e2el_ms
	std_e2el_ms p99_e2el_ms input_lens output_lens ttfts itls generated_texts errors`)

func TestEncode(t *testing.T) {
	r, outcomes := some()
	o := everything()
	o.Model, o.Detailed, o.Metadata = "openai/gpt-oss-20b", true, map[string]string{"host": "a"}
	o.Percentiles = []float64{99, 99.9}
	b := hosttest.Must(r.Encode(&o, time.Now(), outcomes))(t)
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	for _, name := range vllmFields {
		if _, ok := m[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	if m["request_rate"] != "inf" || m["max_concurrency"] != nil || m["host"] != "a" ||
		m["mean_ttft_ms"] != 750.0 || m["p99.9_e2el_ms"] != 2998.0 || m["std_ttft_ms"] != 250.0 ||
		m["ttfts"].([]any)[1] != 1.0 || m["itls"].([]any)[0].([]any)[1] != .3 {
		t.Errorf("%s", b)
	}
	o.RequestRate, o.MaxConcurrency = 2.5, 8
	b, _ = r.Encode(&o, time.Time{}, nil)
	if err := json.Unmarshal(b, &m); err != nil || m["request_rate"] != 2.5 ||
		m["burstiness"] != 1.0 || m["max_concurrency"] != 8.0 {
		t.Errorf("%s", b)
	}
}

func TestCompare(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "a.json")
	lines := filepath.Join(folder, "b.jsonl")
	write := func(name, text string) {
		hosttest.Check(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write(file, `{"output_throughput": 100, "median_tpot_ms": 10, "date": "x"}`)
	write(lines, `{"output_throughput": 250.5, "median_tpot_ms": 20}
{"output_throughput": 50, "completed": 7}`)
	var runs []Saved
	for _, f := range []string{file, lines} {
		list := hosttest.Must(Read(f))(t)
		runs = append(runs, list...)
	}
	var b strings.Builder
	hosttest.Check(t, Compare(&b, runs))
	want := `
                                         a.json             b.jsonl #1             b.jsonl #2
Successful requests                           -                      -                   7.00
Output tok/s                             100.00         250.50   2.505x          50.00   0.500x
Median TPOT (ms)                          10.00          20.00   2.000x                      -
`
	if squeeze(b.String()) != squeeze(want) {
		t.Errorf("%s", b.String())
	}
	for _, bad := range []string{"", "{", "[]", `{"a":1}`, `"x"`} {
		write(file, bad)
		if list, err := Read(file); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestPlot(t *testing.T) {
	run := func(name string, x, y float64) Saved {
		return Saved{Name: name, Figures: map[string]float64{plotX: x, plotY: y}}
	}
	p := Plot{[]Saved{run("low", 100, 5), run("high <&>", 1000, 20)}}
	var b strings.Builder
	hosttest.Check(t, p.Text(&b, 40, 9))
	lines := strings.Split(b.String(), "\n")
	if lines[1] != "       20 |"+strings.Repeat(" ", 39)+"2" ||
		lines[7] != "          |    1" && lines[7] != "        5 |    1" {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	if err := p.SVG(&b); err != nil || strings.Count(b.String(), "<circle") != 2 ||
		!strings.Contains(b.String(), "high &lt;&amp;&gt;") {
		t.Errorf("%v\n%s", err, b.String())
	}
	for _, most := range []float64{0, 1e-3, .7, 1, 3, 59, 61, 1e6} {
		p := Plot{[]Saved{run("x", most, most)}}
		a := p.axis(plotX)
		if a.most < most || len(a.marks()) < 2 || len(a.marks()) > 12 ||
			math.Abs(a.marks()[len(a.marks())-1]-a.most) > 1e-9*a.most {
			t.Errorf("an axis to %v for %v: %v", a.most, most, a.marks())
		}
	}
	if err := (Plot{}).Text(&b, 10, 5); err != nil {
		t.Error(err)
	}
}

func TestPublished(t *testing.T) {
	for _, w := range Workloads[1:] {
		list := Published(w.Name)
		if len(list) != 2 || int(list[0].Figures["completed"]) != w.Prompts {
			t.Errorf("%s: %v", w.Name, list)
		}
	}
}
