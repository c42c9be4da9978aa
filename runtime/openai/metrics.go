// GET /metrics in Prometheus' text form, under vLLM's names, so that dashboards made for vLLM show
// ossrun as well.
//
// The scheduler's counters are read when the metrics are requested; the other counters and the
// histograms change when a turn ends. The registry is private: no other code in the process can add
// to it or collide with it.

package openai

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

type metrics struct {
	http.Handler
	prompt, cached, generated *prometheus.CounterVec
	events, writes            *prometheus.CounterVec     // of streams
	success                   *prometheus.CounterVec     // by finished_reason
	faults                    *prometheus.CounterVec     // by kind
	turns                     []*prometheus.HistogramVec // of turnMetrics
}

// Bounds in seconds, based on vLLM's: one decode step on a fast card to one on a slow CPU.
var (
	firstTokenBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
		1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	perTokenBounds = []float64{0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4,
		0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	tokenBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000,
		50000, 100000}
	requestBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120,
		240, 480, 960, 1920, 7680}
)

// turnMetrics are the histograms to which each turn with output adds a value, unless it is below 0.
var turnMetrics = []struct {
	name, help string
	bounds     []float64
	of         func(session.Done) float64
}{
	{"vllm:time_to_first_token_seconds", "From submission to the first token.", firstTokenBounds,
		func(d session.Done) float64 { return d.Timing.TTFT.Seconds() }},
	{"vllm:request_time_per_output_token_seconds",
		"Mean time of a token after the first, one value a request.", perTokenBounds,
		func(d session.Done) float64 {
			if d.Usage.Completion < 2 {
				return -1
			}
			return d.Timing.Decode.Seconds() / float64(d.Usage.Completion-1)
		}},
	{"vllm:e2e_request_latency_seconds", "From submission to the last token.", requestBounds,
		func(d session.Done) float64 { return (d.Timing.TTFT + d.Timing.Decode).Seconds() }},
	{"vllm:request_queue_time_seconds", "From submission to the first step.", requestBounds,
		func(d session.Done) float64 { return d.Timing.Queued.Seconds() }},
	{"vllm:request_prefill_time_seconds", "From the first step to the first token.", requestBounds,
		func(d session.Done) float64 { return d.Timing.Prefill.Seconds() }},
	{"vllm:request_decode_time_seconds", "From the first token to the last.", requestBounds,
		func(d session.Done) float64 { return d.Timing.Decode.Seconds() }},
	{"vllm:request_prompt_tokens", "Prompt tokens of a request.", tokenBounds,
		func(d session.Done) float64 { return float64(d.Usage.Prompt) }},
	{"vllm:request_generation_tokens", "Generated tokens of a request, reasoning included.",
		tokenBounds, func(d session.Done) float64 { return float64(d.Usage.Completion) }},
}

func newMetrics(o answer.Options, preparing func() int64) *metrics {
	registry := prometheus.NewRegistry()
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			append([]string{"model_name"}, labels...))
		registry.MustRegister(c)
		return c
	}
	m := &metrics{
		prompt: counter("vllm:prompt_tokens_total", "Prompt tokens of finished requests."),
		cached: counter("vllm:prompt_tokens_cached_total",
			"Prompt tokens that were found in the prefix cache."),
		generated: counter("vllm:generation_tokens_total", "Generated tokens, reasoning included."),
		events: counter("ossrun:stream_events_total",
			"Events of finished streams. Under load one holds the text of several tokens."),
		writes: counter("ossrun:stream_writes_total",
			"Writes to clients that these events were sent with."),
		success: counter("vllm:request_success_total", "Turns that ended, by how.",
			"finished_reason"),
		faults: counter("ossrun:harmony_faults_total",
			"Places where sampled tokens were not legal Harmony, by kind.", "kind"),
	}
	for _, t := range turnMetrics {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: t.name, Help: t.help,
			Buckets: t.bounds}, []string{"model_name"})
		registry.MustRegister(h)
		m.turns = append(m.turns, h)
	}
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "ossrun:store_refused_records_total",
		Help: "Sampled turns and stored responses that the disk has refused."},
		func() float64 { return float64(o.Store.Refused()) }))
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ossrun:requests_preparing",
		Help: "Requests that are read, compiled and encoded, and not in the scheduler yet."},
		func() float64 { return float64(preparing()) }))
	registry.MustRegister(&stateCollector{o.Models, o.Keys}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

func (m *metrics) Streamed(model string, events, writes int) {
	m.events.WithLabelValues(model).Add(float64(events))
	m.writes.WithLabelValues(model).Add(float64(writes))
}

func (m *metrics) Finished(model string, d session.Done) {
	m.success.WithLabelValues(model, string(d.Finish)).Inc()
	m.prompt.WithLabelValues(model).Add(float64(d.Usage.Prompt))
	m.cached.WithLabelValues(model).Add(float64(d.Usage.Cached))
	m.generated.WithLabelValues(model).Add(float64(d.Usage.Completion))
	for kind, n := range d.Faults {
		m.faults.WithLabelValues(model, harmony.Fault(kind).String()).Add(float64(n))
	}
	for i, t := range turnMetrics {
		if v := t.of(d); v >= 0 && d.Usage.Completion > 0 {
			m.turns[i].WithLabelValues(model).Observe(v)
		}
	}
}

// stateCollector reads the schedulers of all loaded models and the usage of keys when the metrics
// are requested. It describes nothing beforehand: each value brings its description.
type stateCollector struct {
	models session.Models
	keys   *keys.Ring
}

func (s *stateCollector) Describe(chan<- *prometheus.Desc) {}

func (s *stateCollector) Collect(ch chan<- prometheus.Metric) {
	for model, now := range s.models.Stats() {
		tell := func(name, help string, kind prometheus.ValueType, value float64) {
			desc := prometheus.NewDesc(name, help, []string{"model_name"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, kind, value, model)
		}
		for _, m := range gauges(now) {
			tell(m.name, m.help, prometheus.GaugeValue, m.value)
		}
		for _, m := range totals(now) {
			tell(m.name, m.help, prometheus.CounterValue, float64(m.value))
		}
	}
	for name, used := range s.keys.Totals() {
		tell := func(metric, help, kind string, value int) {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(metric, help, []string{"key",
				"kind"}, nil), prometheus.CounterValue, float64(value), name, kind)
		}
		const tokens = "Tokens by named key; prompt has the cached ones too."
		tell("ossrun:key_requests_total", "Requests by named key.", "generate", used.Requests)
		tell("ossrun:key_tokens_total", tokens, "prompt", used.Prompt)
		tell("ossrun:key_tokens_total", tokens, "cached", used.Cached)
		tell("ossrun:key_tokens_total", tokens, "completion", used.Completion)
	}
}

// metric is a metric of a scheduler, under vLLM's name if it has one.
type metric[T any] struct {
	name, help string
	value      T
}

func gauges(s sched.Stats) []metric[float64] {
	pages := float64(max(s.PagesTotal, 1))
	return []metric[float64]{
		{"vllm:num_requests_running", "Sequences in the running batch.", float64(s.Running)},
		{"vllm:num_requests_waiting", "Requests in the queue.", float64(s.Waiting)},
		{"vllm:kv_cache_usage_perc", "Part of the KV pages in use, 0 to 1.",
			float64(s.PagesUsed) / pages},
		{"ossrun:kv_cache_cached_perc",
			"Part of the KV pages that are unused and hold a cached prefix, 0 to 1.",
			float64(s.PagesCached) / pages},
	}
}

func totals(s sched.Stats) []metric[uint64] {
	return []metric[uint64]{
		{"vllm:num_preemptions_total", "Sequences that were preempted and computed again.",
			s.Preemptions},
		{"vllm:prefix_cache_queries_total",
			"Prompt tokens that were looked up in the prefix cache.", s.PrefixQueries},
		{"vllm:prefix_cache_hits_total",
			"Prompt tokens that were found in the prefix cache and not computed.", s.PrefixHits},
		{"vllm:spec_decode_num_drafts_total", "Drafts that were tried.", s.Drafts},
		{"vllm:spec_decode_num_draft_tokens_total", "Tokens of these drafts.", s.DraftTokens},
		{"vllm:spec_decode_num_accepted_tokens_total", "Tokens of drafts that were right.",
			s.AcceptedTokens},
		{"ossrun:prefilled_tokens_total",
			"Prompt tokens that were computed for the first time.", s.Prefilled},
		{"ossrun:rebuilt_tokens_total",
			"Tokens that were computed again for the window layers only, whose pages were gone.",
			s.Rebuilt},
		{"ossrun:recomputed_tokens_total",
			"Tokens that were computed again after a preemption.", s.Recomputed},
		{"ossrun:kv_pages_swapped_out_total",
			"KV pages that were copied to host memory or disk.", s.SwappedOut},
		{"ossrun:kv_pages_swapped_in_total",
			"KV pages that were copied back from host memory or disk.", s.SwappedIn},
		{"ossrun:engine_steps_total", "Steps of the engine.", s.Steps},
		{"ossrun:engine_faults_total",
			"Steps that failed; the engine was started again after each.", s.Faults},
		{"ossrun:non_finite_logits_total",
			"Requests that ended because their logits were NaN or infinite.", s.NonFinite},
	}
}
