// The figures that the vLLM 0.10.1 benchmarks published for gpt-oss. They name no GPU.

package load

// PublishedSource says where the published figures are from.
const PublishedSource = "benchmarks of vLLM 0.10.1 (vllm/vllm-openai:v0.10.1), which name no GPU"

// publishedFigures are the columns of publishedRuns, by vLLM's names.
var publishedFigures = []string{
	"duration", "completed", "request_throughput", "input_throughput", "output_throughput",
	"mean_e2el_ms", "median_e2el_ms", "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms",
	"mean_tpot_ms", "median_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "median_itl_ms",
	"p99_itl_ms",
}

var publishedRuns = []struct {
	workload, name string
	figures        []float64
}{
	{"sharegpt", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{379.42, 10000, 26.36, 5876.78, 5164.10, 190588.37, 189943.47, 181443.13,
			181049.44, 359864.30, 48.21, 47.01, 90.54, 46.96, 37.35, 110.20}},
	{"1024-1024", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{441.31, 2000, 4.53, 4640.77, 4640.77, 253112.49, 239051.28, 199083.58,
			183767.53, 404096.66, 52.81, 54.01, 55.22, 52.94, 41.23, 136.31}},
	{"2000-6000", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{891.71, 500, 0.56, 1121.44, 3364.32, 669859.72, 485453.96, 236225.47,
			37242.17, 486426.06, 72.28, 73.30, 74.72, 72.56, 69.85, 178.58}},
	{"6000-2000", "vLLM 0.10.1 20b TP 1 (published)",
		[]float64{604.02, 500, 0.83, 4966.71, 1655.57, 473105.44, 454905.66, 220394.29,
			162918.45, 459071.82, 126.42, 137.92, 146.07, 127.55, 86.33, 279.93}},
	{"sharegpt", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{493.49, 10000, 20.26, 4518.39, 3970.44, 245212.92, 244736.09, 233288.58,
			233224.01, 465438.45, 62.35, 61.38, 107.51, 61.24, 50.35, 131.37}},
	{"1024-1024", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{544.87, 2000, 3.67, 3758.69, 3758.69, 308765.67, 290523.22, 242108.89,
			223256.94, 490674.40, 65.16, 65.98, 66.52, 65.29, 52.63, 153.59}},
	{"2000-6000", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{955.25, 500, 0.52, 1046.85, 3140.55, 716530.67, 518947.70, 252831.64,
			40690.75, 520688.03, 77.30, 78.33, 79.72, 77.91, 74.09, 191.69}},
	{"6000-2000", "vLLM 0.10.1 120b TP 2 (published)",
		[]float64{612.86, 500, 0.82, 4895.06, 1631.69, 476317.06, 453026.26, 220096.08,
			161133.91, 457142.02, 128.17, 138.67, 146.02, 128.78, 89.86, 264.07}},
}

// Published are the published runs of a workload.
func Published(workload string) (list []Saved) {
	for _, r := range publishedRuns {
		if r.workload != workload {
			continue
		}
		s := Saved{r.name, map[string]float64{}}
		for i, v := range r.figures {
			s.Figures[publishedFigures[i]] = v
		}
		s.Figures["total_token_throughput"] = s.Figures["input_throughput"] +
			s.Figures["output_throughput"]
		list = append(list, s)
	}
	return list
}
