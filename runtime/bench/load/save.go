// A run as JSON, in the fields of vLLM's benchmark.

package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

type member struct {
	name  string
	value any
}

// Encode makes the run's JSON object on one line.
func (r *Result) Encode(o *Options, began time.Time, outcomes []Outcome) ([]byte, error) {
	var rate any = o.RequestRate
	if math.IsInf(o.RequestRate, 1) || o.RequestRate <= 0 {
		rate = "inf"
	}
	var most any
	if o.MaxConcurrency > 0 {
		most = o.MaxConcurrency
	}
	list := []member{{"date", began.Format("20060102-150405")}, {"endpoint_type", o.Backend},
		{"backend", o.backendName()}, {"label", nil}, {"model_id", o.Model},
		{"tokenizer_id", "o200k_harmony"}}
	for name, value := range o.Metadata {
		list = append(list, member{name, value})
	}
	list = append(list, []member{
		{"num_prompts", r.Completed + r.Failed}, {"request_rate", rate},
		{"burstiness", o.Burstiness}, {"max_concurrency", most}, {"duration", r.Duration},
		{"completed", r.Completed}, {"failed", r.Failed},
		{"total_input_tokens", r.InputTokens}, {"total_output_tokens", r.OutputTokens},
		{"total_output_tokens_retokenized", r.Retokenized},
		{"request_throughput", r.RequestsPerS}, {"request_goodput", r.GoodPerS},
		{"input_throughput", r.InputPerS}, {"output_throughput", r.OutputPerS},
		{"total_token_throughput", r.TotalPerS},
		{"max_output_tokens_per_s", r.PeakOutputPerS},
		{"max_concurrent_requests", r.PeakConcurrency},
	}...)
	if o.GPUs > 0 {
		list = append(list, member{"num_gpus", o.GPUs})
	}
	for _, m := range []struct {
		name string
		l    Latency
	}{{"ttft", r.TTFT}, {"tpot", r.TPOT}, {"itl", r.ITL}, {"e2el", r.E2EL}} {
		list = append(list, member{"mean_" + m.name + "_ms", m.l.Mean},
			member{"median_" + m.name + "_ms", m.l.Median},
			member{"std_" + m.name + "_ms", m.l.Std})
		for _, p := range o.Percentiles {
			list = append(list, member{"p" + percent(p) + "_" + m.name + "_ms",
				m.l.Percentile(p)})
		}
	}
	if o.Detailed {
		list = append(list, details(outcomes)...)
	}
	return object(list)
}

// details are lists with an element for each request; times are in seconds, as in vLLM.
func details(outcomes []Outcome) []member {
	n := len(outcomes)
	inputs, outputs := make([]int, n), make([]int, n)
	ttfts, itls := make([]float64, n), make([][]float64, n)
	texts, errs := make([]string, n), make([]string, n)
	for i, o := range outcomes {
		inputs[i], outputs[i], texts[i] = o.InputTokens, max(o.OutputTokens, 0), o.Text
		ttfts[i], itls[i] = o.TTFT.Seconds(), make([]float64, len(o.Gaps))
		for j, gap := range o.Gaps {
			itls[i][j] = gap.Seconds()
		}
		if o.Err != nil {
			errs[i] = o.Err.Error()
		}
	}
	return []member{{"input_lens", inputs}, {"output_lens", outputs}, {"ttfts", ttfts},
		{"itls", itls}, {"generated_texts", texts}, {"errors", errs}}
}

func object(list []member) ([]byte, error) {
	var b bytes.Buffer
	for i, m := range list {
		b.WriteByte("{,"[min(i, 1)])
		name, _ := json.Marshal(m.name)
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
