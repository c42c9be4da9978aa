// ossrun bench serve: the command lines of both documents that it follows, on a fake server, with
// its figures compared with the server's own.

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// standIn is a server that answers every request with as many words as it asks for.
type standIn struct {
	mu     sync.Mutex
	bodies []map[string]any
	paths  []string
	keys   []string
	ids    []string
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == "GET" {
		fmt.Fprint(w, `{"data":[{"id":"openai/gpt-oss-20b"}]}`)
		return
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	s.bodies, s.paths = append(s.bodies, body), append(s.paths, r.URL.Path)
	s.keys = append(s.keys, r.Header.Get("Authorization"))
	s.ids = append(s.ids, r.Header.Get("X-Request-Id")+" "+r.Header.Get("x-a"))
	s.mu.Unlock()
	n, _ := body["max_tokens"].(float64)
	if body["stream"] != true {
		fmt.Fprintf(w, `{"choices":[{"text":" a"}],"usage":{"completion_tokens":%v}}`, n)
		return
	}
	for range int(n) {
		fmt.Fprint(w, `data: {"choices":[{"text":" a"}]}`+"\n\n")
	}
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"completion_tokens\":%v}}\n\n", n)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// bench runs ossrun bench serve in process on the fake server.
func (s *standIn) bench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	t.Setenv("OPENAI_BASE_URL", srv.URL+"/v1")
	host, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "http://"), ":")
	return runHere(t.Context(), append([]string{"bench", "serve", "--host", host, "--port", port},
		args...)...)
}

// The guide's command line, fewer requests of fewer tokens.
func TestBenchServeGuide(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vllm_benchmark_serving_results.json")
	s := &standIn{}
	code, out, errs := s.bench(t, strings.Fields(`--model openai/gpt-oss-120b --trust-remote-code
		--dataset-name random --random-input-len 16 --random-output-len 4 --ignore-eos
		--max-concurrency 2 --num-prompts 10 --goodput ttft:60000 tpot:60000 --save-result
		--metadata a=b --result-filename `+file)...)
	if code != 0 || errs != "" || !strings.HasPrefix(out,
		"============ Serving Benchmark Result ============\nSuccessful requests:"+
			"                     10\n") ||
		!strings.Contains(out, "Total input tokens:                      160\n"+
			"Total generated tokens:                  40\n") ||
		!strings.Contains(out, "Median E2EL (ms):") || !strings.Contains(out, "goodput") {
		t.Fatalf("%d %s\n%s", code, errs, out)
	}
	var saved map[string]any
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &saved)
	}
	if err != nil || saved["completed"] != 10.0 || saved["model_id"] != "openai/gpt-oss-120b" ||
		saved["max_concurrency"] != 2.0 || saved["request_rate"] != "inf" || saved["a"] != "b" {
		t.Errorf("%v %s", err, text)
	}
	if len(s.bodies) != 11 || s.bodies[3]["ignore_eos"] != true ||
		s.bodies[3]["model"] != "openai/gpt-oss-120b" || s.paths[3] != "/v1/completions" {
		t.Errorf("%d bodies, %v", len(s.bodies), s.bodies[3])
	}
}

// Flags of vllm bench serve that become members of each request, and vLLM's other names of ours.
// Few requests for the concurrency are named, and vLLM's other benchmarks.
func TestBenchServeMembers(t *testing.T) {
	s := &standIn{}
	args := strings.Fields(`--temperature 0.5 --top-p 0.9 --top-k 20 --min-p 0.1 --no-stream --disable-stream
		--frequency-penalty 0.2 --presence-penalty 0.3 --repetition-penalty 1.1 --input-len 8
		--output-len 4 --num-prompts 4 --extra-body {"a":1} --max-concurrency`)
	code, _, errs := s.bench(t, append(args, "1")...)
	if code != 0 || !strings.Contains(errs, "--num-prompts 5") {
		t.Errorf("%d %s", code, errs)
	}
	for member, want := range map[string]any{"temperature": .5, "top_p": .9, "top_k": 20.,
		"min_p": .1, "frequency_penalty": .2, "presence_penalty": .3, "repetition_penalty": 1.1,
		"a": 1., "stream": false, "max_tokens": 4.} {
		if got := s.bodies[1][member]; got != want {
			t.Errorf("%s is %v, not %v", member, got, want)
		}
	}
	if code, _, errs := s.bench(t, append(args, "1", "--num-prompts", "5")...); code != 0 ||
		strings.Contains(errs, "steady") {
		t.Errorf("%d %s", code, errs)
	}
	for _, name := range []string{"throughput", "latency"} {
		if code, _, errs := runHere(t.Context(), "bench", name, "--model", "x"); code != exitUsage ||
			!strings.Contains(errs, "vLLM's bench "+name+" is ossrun bench") {
			t.Errorf("%d %s", code, errs)
		}
	}
}

// Flags of vllm bench serve about the run: what the requests carry, and the file has.
func TestBenchServeRun(t *testing.T) {
	s, folder := &standIn{}, t.TempDir()
	prompts := filepath.Join(folder, "prompts.jsonl")
	write(t, prompts, `{"prompt":"one"}`+"\n"+`{"prompt":"two"}`)
	args := []string{"--dataset-name", "custom", "--dataset-path", prompts, "--custom-output-len", "2",
		"--num-prompts", "4", "--num-warmups", "0", "--max-concurrency", "1", "--header", "x-a=1",
		"--request-id-prefix", "r-", "--logprobs", "3", "--chat-template-kwargs", `{"b":2}`,
		"--lora-assignment", "round-robin", "--ramp-up-strategy", "linear", "--ramp-up-start-rps",
		"100", "--ramp-up-end-rps", "900", "--label", "mine", "--append-result", "--save-detailed",
		"--result-dir", folder, "--result-filename", "r.json", "--plot-timeline", "--insecure",
		"--ready-check-timeout-sec", "9", "--disable-shuffle", "--lora-modules", "l1", "l2"}
	for range 2 {
		if code, _, errs := s.bench(t, args...); code != 0 {
			t.Fatalf("%d %s", code, errs)
		}
	}
	for i, b := range s.bodies[:4] {
		if b["model"] != []string{"l1", "l2"}[i%2] || b["logprobs"] != 3. || b["max_tokens"] != 2. ||
			b["chat_template_kwargs"] == nil || s.ids[i] != fmt.Sprintf("r-%d 1", i) {
			t.Errorf("%d: %v %q", i, b, s.ids[i])
		}
	}
	if s.bodies[0]["prompt"] != "one" || s.bodies[1]["prompt"] != "two" || len(s.bodies) != 8 {
		t.Error(s.bodies)
	}
	text, err := os.ReadFile(filepath.Join(folder, "r.json"))
	if err != nil || bytes.Count(text, []byte("\n")) != 2 {
		t.Fatalf("%s %v", text, err)
	}
	var saved map[string]any
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&saved); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"start_times", "latencies", "queue_times"} {
		if list, _ := saved[name].([]any); len(list) != 4 {
			t.Errorf("%s is %v", name, saved[name])
		}
	}
	if saved["label"] != "mine" || saved["rtfx"] != 0. || saved["ramp_up_end_rps"] != 900. {
		t.Error(saved)
	}
	page, err := os.ReadFile(filepath.Join(folder, "r.timeline.html"))
	if err != nil || bytes.Count(page, []byte(`class="row"`)) != 4 {
		t.Errorf("%v %s", err, page)
	}
}

// The options of the second document, in its spelling.
func TestBenchServeSecondDocument(t *testing.T) {
	t.Setenv("OSSRUN_API_KEY", "")
	t.Setenv("VLLM_API_KEY", "")
	t.Setenv("OPENAI_API_KEY", "of the user")
	folder := t.TempDir()
	talks, file := filepath.Join(folder, "talks.json"), filepath.Join(folder, "runs.jsonl")
	text := `[{"conversations":[{"value":"What is the capital of France?"},{"value":"Paris."}]},` +
		`{"conversations":[{"value":"Name three rivers, please."},{"value":"Rhine, Elbe, Oder."}]}]`
	write(t, talks, text)
	s := &standIn{}
	code, out, errs := s.bench(t, "--backend", "vllm", "--dataset-name", "sharegpt",
		"--dataset-path", talks, "--num-prompts", "2", "--tokenizer", "openai/gpt-oss-20b",
		"--sharegpt-output-len", "3", "--multi", "--request-rate-range", "100,400,100",
		"--disable-ignore-eos", "--extra-request-body", `{"temperature": 0}`, "--output-file", file,
		"--disable-tqdm", "--disable-warmup", "--table", "full")
	if code != 0 || strings.Count(out, "Backend:                                 vllm\n") != 3 ||
		!strings.Contains(out, "Traffic request rate:                    200\n") ||
		!strings.Contains(out, "Total generated tokens (retokenized):    6\n") {
		t.Fatalf("%d %s\n%s", code, errs, out)
	}
	if len(s.bodies) != 6 || s.bodies[0]["temperature"] != 0.0 || s.bodies[0]["ignore_eos"] != nil ||
		s.keys[0] != "Bearer of the user" {
		t.Errorf("%d bodies: %v, %v", len(s.bodies), s.bodies[0], s.keys)
	}
	code, out, errs = s.bench(t, "--compare", file, "--plot", filepath.Join(folder, "p.svg"))
	if code != 0 || !strings.Contains(out, "runs.jsonl #3") || !strings.Contains(out, "median TPOT") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	if svg, err := os.ReadFile(filepath.Join(folder, "p.svg")); err != nil ||
		!bytes.Contains(svg, []byte("<circle")) {
		t.Errorf("%v %s", err, svg)
	}
	code, out, _ = s.bench(t, "--disable-stream", "--num-prompts", "1", "--json")
	if code != 0 || s.bodies[len(s.bodies)-1]["stream"] != false || !json.Valid([]byte(out)) ||
		!strings.HasPrefix(out, "{") {
		t.Errorf("%d %s", code, out)
	}
}

// A published workload has exact lengths, fewer requests here, and the published figures.
func TestBenchServeWorkload(t *testing.T) {
	s := &standIn{}
	code, out, errs := s.bench(t, "--workload", "1024-1024", "--num-prompts", "2")
	if code != 0 || !strings.Contains(out, "Total input tokens:                      2048\n") ||
		!strings.Contains(out, "Total generated tokens:                  2048\n") ||
		!strings.Contains(out, "Backend:") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	code, out, errs = s.bench(t, "--workload", "seed")
	if code != exitUsage || !strings.Contains(errs, "--dataset-path") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

func TestBenchServeRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--random-range-ratio 1.0":           "exact: use 0 or --workload",
		"--random-range-ratio -1":            "from 0 to below 1",
		"--request-rate 0":                   "above 0 or inf",
		"--multi --request-rate-range 2,34":  "FROM,TO,STEP",
		"--goodput itl:5":                    "ttft, tpot and e2el",
		"--metadata x":                       "KEY=VALUE",
		"--metric-percentiles 101":           "0 to 100",
		"--extra-request-body []":            "JSON object",
		"--endpoint /v2/x":                   "/v1/chat/completions",
		"--dataset-name sonnet":              "prefix_repetition, sharegpt",
		"--dataset-name random-mm":           "needs images",
		"--dataset-name custom":              "--dataset-path",
		"--random-output-len 0":              "at least 1",
		"--random-output-len -1":             "at least 1",
		"--header x":                         "KEY=VALUE",
		"--ramp-up-strategy linear":          "--ramp-up-start-rps",
		"--timeline-itl-thresholds 5":        "25,50",
		"--chat-template-kwargs x":           "JSON object",
		"--dataset-name sharegpt":            "--dataset-path",
		"--compare /nonexistent.json":        "no such file",
		"--num-prompts 0":                    "at least 1",
		"--backend tgi":                      "openai",
		"--base-url ftp://x --num-prompts 1": "address of a server",
		"extra":                              "extra",
	} {
		s := &standIn{}
		if code, out, errs := s.bench(t, strings.Fields(args)...); code != exitUsage ||
			!strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: %d %s%s", args, code, out, errs)
		}
	}
	if code, _, errs := runHere(t.Context(), "bench", "serve", "--port", "1"); code != exitFailure ||
		!strings.Contains(errs, "refused") {
		t.Errorf("%d %s", code, errs)
	}
}

// What clients see agrees with what the server's own metrics say: counts exactly, and no time of a
// client's is shorter than the server's or longer than the run.
func TestBenchServeAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	const requests = 4
	ours, theirs := serveDemo(t).benched(requests, 20)
	for _, name := range []string{"total_output_tokens", "total_input_tokens"} {
		if ours[name] != theirs[name] {
			t.Errorf("%s: ours %v, the server's %v", name, ours[name], theirs[name])
		}
	}
	before := 0.
	for _, time := range []float64{theirs["mean_ttft_ms"], ours["mean_ttft_ms"],
		ours["mean_e2el_ms"], 1000 * ours["duration"]} {
		if time <= before {
			t.Errorf("ours %v, the server's %v", ours, theirs)
		}
		before = time
	}
}

// TestMeasureBenchServe: on a quiet machine the times agree within 5 % or 10 ms.
func TestMeasureBenchServe(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("figures of a quiet machine: OSSRUN_MEASURE=1")
	}
	ours, theirs := serveDemo(t).benched(12, 100)
	for _, name := range []string{"mean_ttft_ms", "mean_e2el_ms"} {
		t.Logf("%s: ours %.2f, the server's %.2f", name, ours[name], theirs[name])
		if math.Abs(ours[name]-theirs[name]) > max(.05*theirs[name], 10) {
			t.Errorf("%s differs", name)
		}
	}
}

// benched are the figures of a bench of a new server, and the server's own.
func (s *served) benched(requests, tokens int) (ours, theirs map[string]float64) {
	code, out, errs := runHere(s.t.Context(), "bench", "serve", "--base-url", s.url,
		"--random-input-len", "40", "--random-output-len", strconv.Itoa(tokens), "--num-prompts",
		strconv.Itoa(requests), "--json", "--max-concurrency", "3", "--ignore-eos",
		"--disable-warmup")
	if code != 0 {
		s.t.Fatal(errs)
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		s.t.Fatal(err)
	}
	ours, theirs = map[string]float64{}, map[string]float64{}
	for name, figure := range all {
		ours[name], _ = figure.(float64)
	}
	const label = `{model_name="demo"}`
	s.eventually("all is counted", func() bool {
		return s.metric("vllm:generation_tokens_total"+label) >= float64(requests*tokens)
	})
	for name, metric := range map[string]string{"total_output_tokens": "generation_tokens_total",
		"total_input_tokens": "prompt_tokens_total"} {
		theirs[name] = s.metric("vllm:" + metric + label)
	}
	for name, metric := range map[string]string{"mean_ttft_ms": "time_to_first_token_seconds_sum",
		"mean_e2el_ms": "e2e_request_latency_seconds_sum"} {
		theirs[name] = s.metric("vllm:"+metric+label) * 1000 / float64(requests)
	}
	return ours, theirs
}
