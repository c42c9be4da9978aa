// GET /metrics in Prometheus' text form, under vLLM's names, so that dashboards made for vLLM show ossrun as well.
//
// What the scheduler counts is read when it is asked for; the other counters and the histograms grow when a turn ends. The
// registry is private: nothing else in the process can add to it or collide with it.

package openai

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/session"
)

type metrics struct {
	http.Handler
	prompt, cached, generated *prometheus.CounterVec
	success                   *prometheus.CounterVec // by finished_reason
	faults                    *prometheus.CounterVec // by kind
	ttft, tpot, latency       *prometheus.HistogramVec
}

// Bounds in seconds, from what vLLM uses: one decode step on a fast card to one on a slow CPU.
var (
	firstTokenBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	perTokenBounds   = []float64{0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds    = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
)

func newMetrics(models ModelSource) *metrics {
	registry := prometheus.NewRegistry()
	model := []string{"model_name"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(model, labels...))
		registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, bounds []float64) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, model)
		registry.MustRegister(h)
		return h
	}
	m := &metrics{
		prompt:    counter("vllm:prompt_tokens_total", "Prompt tokens of finished requests."),
		cached:    counter("vllm:prompt_tokens_cached_total", "Prompt tokens that were found in the prefix cache."),
		generated: counter("vllm:generation_tokens_total", "Generated tokens, reasoning included."),
		success:   counter("vllm:request_success_total", "Turns that ended, by how.", "finished_reason"),
		faults:    counter("ossrun:harmony_faults_total", "Places where sampled tokens were not legal Harmony, by kind.", "kind"),
		ttft:      histogram("vllm:time_to_first_token_seconds", "From submission to the first token.", firstTokenBounds),
		tpot:      histogram("vllm:request_time_per_output_token_seconds", "Mean time of a token after the first, one value a request.", perTokenBounds),
		latency:   histogram("vllm:e2e_request_latency_seconds", "From submission to the last token.", requestBounds),
	}
	registry.MustRegister(&state{models})
	m.Handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// finished counts one turn.
func (m *metrics) finished(model string, d session.Done) {
	m.success.WithLabelValues(model, string(d.Finish)).Inc()
	m.prompt.WithLabelValues(model).Add(float64(d.Usage.Prompt))
	m.cached.WithLabelValues(model).Add(float64(d.Usage.Cached))
	m.generated.WithLabelValues(model).Add(float64(d.Usage.Completion))
	for kind, n := range d.Faults {
		m.faults.WithLabelValues(model, harmony.Fault(kind).String()).Add(float64(n))
	}
	if d.Usage.Completion == 0 {
		return
	}
	m.ttft.WithLabelValues(model).Observe(d.Timing.TTFT.Seconds())
	m.latency.WithLabelValues(model).Observe((d.Timing.TTFT + d.Timing.Decode).Seconds())
	if n := d.Usage.Completion - 1; n > 0 {
		m.tpot.WithLabelValues(model).Observe(d.Timing.Decode.Seconds() / float64(n))
	}
}

// state reads the scheduler of every loaded model when the metrics are asked for.
type state struct{ models ModelSource }

var (
	runningDesc = prometheus.NewDesc("vllm:num_requests_running", "Sequences in the running batch.", []string{"model_name"}, nil)
	waitingDesc = prometheus.NewDesc("vllm:num_requests_waiting", "Requests in the queue.", []string{"model_name"}, nil)
	kvDesc      = prometheus.NewDesc("vllm:kv_cache_usage_perc", "Part of the KV pages in use, 0 to 1.", []string{"model_name"}, nil)
	preemptDesc = prometheus.NewDesc("vllm:num_preemptions_total", "Sequences that gave their pages back and were computed again.", []string{"model_name"}, nil)
)

func (s *state) Describe(ch chan<- *prometheus.Desc) {
	ch <- runningDesc
	ch <- waitingDesc
	ch <- kvDesc
	ch <- preemptDesc
}

func (s *state) Collect(ch chan<- prometheus.Metric) {
	for _, r := range s.models.Loaded() {
		now := r.Stats()
		kv := 0.0
		if now.PagesTotal > 0 {
			kv = float64(now.PagesUsed) / float64(now.PagesTotal)
		}
		ch <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(now.Running), r.ID())
		ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(now.Waiting), r.ID())
		ch <- prometheus.MustNewConstMetric(kvDesc, prometheus.GaugeValue, kv, r.ID())
		ch <- prometheus.MustNewConstMetric(preemptDesc, prometheus.CounterValue, float64(now.Preemptions), r.ID())
	}
}
