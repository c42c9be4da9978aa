// GET /metrics in Prometheus' text form, under vLLM's names, so that dashboards made for vLLM show
// ossrun as well.
//
// The scheduler's counters are read when the metrics are requested; the other counters and the
// histograms change when a turn ends. The registry is private: no other code in the process can add
// to it or collide with it.

package openai

import (
	_ "embed"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

//go:embed metrics.txt
var metricsText string

// metricHelp are the descriptions of the metrics, by name.
var metricHelp = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(metricsText) {
		name, help, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = help
	}
	return all
})

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
	name   string
	bounds []float64
	of     func(session.Done) float64
}{
	{"vllm:time_to_first_token_seconds", firstTokenBounds,
		func(d session.Done) float64 { return d.Timing.TTFT.Seconds() }},
	{"vllm:request_time_per_output_token_seconds", perTokenBounds,
		func(d session.Done) float64 {
			if d.Usage.Completion < 2 {
				return -1
			}
			return d.Timing.Decode.Seconds() / float64(d.Usage.Completion-1)
		}},
	{"vllm:e2e_request_latency_seconds", requestBounds,
		func(d session.Done) float64 { return (d.Timing.TTFT + d.Timing.Decode).Seconds() }},
	{"vllm:request_queue_time_seconds", requestBounds,
		func(d session.Done) float64 { return d.Timing.Queued.Seconds() }},
	{"vllm:request_prefill_time_seconds", requestBounds,
		func(d session.Done) float64 { return d.Timing.Prefill.Seconds() }},
	{"vllm:request_decode_time_seconds", requestBounds,
		func(d session.Done) float64 { return d.Timing.Decode.Seconds() }},
	{"vllm:request_prompt_tokens", tokenBounds,
		func(d session.Done) float64 { return float64(d.Usage.Prompt) }},
	{"vllm:request_generation_tokens", tokenBounds,
		func(d session.Done) float64 { return float64(d.Usage.Completion) }},
}

func newMetrics(o answer.Options, preparing func() int64) *metrics {
	const refusedRecords = "ossrun:store_refused_records_total"
	const preparingRequests = "ossrun:requests_preparing"
	registry := prometheus.NewRegistry()
	counter := func(name string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: name, Help: metricHelp()[name]},
			append([]string{"model_name"}, labels...))
		registry.MustRegister(c)
		return c
	}
	m := &metrics{
		prompt:    counter("vllm:prompt_tokens_total"),
		cached:    counter("vllm:prompt_tokens_cached_total"),
		generated: counter("vllm:generation_tokens_total"),
		events:    counter("ossrun:stream_events_total"),
		writes:    counter("ossrun:stream_writes_total"),
		success:   counter("vllm:request_success_total", "finished_reason"),
		faults:    counter("ossrun:harmony_faults_total", "kind"),
	}
	for _, t := range turnMetrics {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: t.name,
			Help: metricHelp()[t.name], Buckets: t.bounds}, []string{"model_name"})
		registry.MustRegister(h)
		m.turns = append(m.turns, h)
	}
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: refusedRecords, Help: metricHelp()[refusedRecords]},
		func() float64 { return float64(o.Store.Refused()) }))
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: preparingRequests, Help: metricHelp()[preparingRequests]},
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
		tell := func(name string, kind prometheus.ValueType, value float64) {
			desc := prometheus.NewDesc(name, metricHelp()[name], []string{"model_name"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, kind, value, model)
		}
		for name, value := range gauges(now) {
			tell(name, prometheus.GaugeValue, value)
		}
		for name, value := range totals(now) {
			tell(name, prometheus.CounterValue, float64(value))
		}
	}
	for name, used := range s.keys.Totals() {
		tell := func(metric, kind string, value int) {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(metric, metricHelp()[metric],
				[]string{"key", "kind"}, nil), prometheus.CounterValue, float64(value), name, kind)
		}
		tell("ossrun:key_requests_total", "generate", used.Requests)
		tell("ossrun:key_tokens_total", "prompt", used.Prompt)
		tell("ossrun:key_tokens_total", "cached", used.Cached)
		tell("ossrun:key_tokens_total", "completion", used.Completion)
	}
}

// gauges and totals are the metrics of a scheduler, under vLLM's names if it has them.
func gauges(s sched.Stats) map[string]float64 {
	pages := float64(max(s.PagesTotal, 1))
	return map[string]float64{
		"vllm:num_requests_running":   float64(s.Running),
		"vllm:num_requests_waiting":   float64(s.Waiting),
		"ossrun:prompt_tokens_unread": float64(s.Unread),
		"vllm:kv_cache_usage_perc":    float64(s.PagesUsed) / pages,
		"ossrun:kv_cache_cached_perc": float64(s.PagesCached) / pages,
	}
}

func totals(s sched.Stats) map[string]uint64 {
	return map[string]uint64{
		"vllm:num_preemptions_total":                 s.Preemptions,
		"vllm:prefix_cache_queries_total":            s.PrefixQueries,
		"vllm:prefix_cache_hits_total":               s.PrefixHits,
		"vllm:spec_decode_num_drafts_total":          s.Drafts,
		"vllm:spec_decode_num_draft_tokens_total":    s.DraftTokens,
		"vllm:spec_decode_num_accepted_tokens_total": s.AcceptedTokens,
		"ossrun:prefilled_tokens_total":              s.Prefilled,
		"ossrun:rebuilt_tokens_total":                s.Rebuilt,
		"ossrun:recomputed_tokens_total":             s.Recomputed,
		"ossrun:kv_pages_swapped_out_total":          s.SwappedOut,
		"ossrun:kv_pages_swapped_in_total":           s.SwappedIn,
		"ossrun:engine_steps_total":                  s.Steps,
		"ossrun:engine_faults_total":                 s.Faults,
		"ossrun:non_finite_logits_total":             s.NonFinite,
	}
}
