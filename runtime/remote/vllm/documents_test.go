package vllm

// Every serving, installing and pulling line, variable and file of both documents is made by some
// request. Commands are compared argument by argument, whatever the order and the spelling
// (--a=b, --a b, --a_b); what a plan adds is named. Where the documents are at hand, each of their
// command lines is looked for here or among those that docs/coverage.md maps.

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Parts of the documents that only recipes.yaml names.
const (
	placeQuickstart = "guide, Installation vLLM"
	placeMI355      = "guide, MI355x(gfx950)"
	placeImage      = "guide, Pull Docker Image"
	placeContainer  = "guide, Run Docker Container"
	placeTrouble    = "guide, Troubleshooting"
)

// line is a line of a document, and the request whose plan has it.
type line struct {
	place, text string
	r           Request
	more        string // what the plan's command has besides
}

var (
	quickA100  = Request{Hardware: "A100", Model: "20b", Launch: "local"}
	largeA100  = Request{Hardware: "A100", Model: "120b", Launch: "local"}
	mi300      = Request{Hardware: "MI300X", Model: "120b", TensorParallel: 8, Launch: "local"}
	mi300Guide = with(mi300, guide)
	mi300Old   = Request{Hardware: "MI300X", Model: "120b", Launch: "local", Firmware: 138,
		Version: "v0.17.0"}
	mi355        = Request{Hardware: "MI355X", Model: "120b", TensorParallel: 8, Launch: "local"}
	hopper       = Request{Hardware: "H200", Model: "120b", Launch: "local"}
	hopperImage  = Request{Hardware: "H200", Model: "20b"}
	blackwell    = with(Request{Hardware: "B200", Model: "120b", Launch: "local"}, guide)
	benchmarks20 = Request{Hardware: "H200", Model: "20b", Version: "v0.10.1"}
	aarch64      = Request{Hardware: "GB200", Model: "120b"}
	marlin       = Request{Hardware: "H200", Model: "120b", Version: "v0.12.0", Launch: "local"}
	vocabulary   = Request{Hardware: "H200", Model: "20b", Launch: "local",
		Vocabulary: "${PWD}/tiktoken_encodings"}
)

func with(r Request, change func(*Request)) Request {
	change(&r)
	return r
}

func tensorParallel(n int) func(*Request) { return func(r *Request) { r.TensorParallel = n } }

const (
	containerFlags = `-e HF_TOKEN -e HF_HOME="$HF_HOME" -v $HF_HOME:$HF_HOME --rm ` +
		`--host 0.0.0.0`
	amdLine = "--tensor-parallel-size=8 --attention-backend ROCM_AITER_UNIFIED_ATTN " +
		"-cc.pass_config.fuse_rope_kvcache=True -cc.use_inductor_graph_partition=True " +
		"--gpu-memory-utilization 0.95 --block-size=64"
	benchmarksRun = `docker run --runtime nvidia --gpus all ` +
		`-v $HF_HOME:/root/.cache/huggingface_hub --env "VLLM_LOGGING_LEVEL=ERROR" ` +
		`-p 8000:8000 --net host --ipc=host --rm --name vllm `
	benchmarksCache = `--env "HF_HOME=/root/.cache/huggingface_hub" ` +
		`--env "TRANSFORMERS_OFFLINE=1" `
	eagle = `speculative-config: '{"model":"nvidia/gpt-oss-120b-Eagle3-v2",` +
		`"num_speculative_tokens":3,"method":"eagle3","draft_tensor_parallel_size":1}'`
)

var documents = []line{
	{placeQuickstart, "uv venv", quickA100, ""},
	{placeQuickstart, "source .venv/bin/activate", quickA100, ""},
	{placeQuickstart, "uv pip install vllm --torch-backend=auto", quickA100, ""},
	{placeQuickstart, "docker run --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai --model " +
		"openai/gpt-oss-20b", Request{Hardware: "A100", Model: "20b"}, containerFlags},
	{placeA100, "vllm serve openai/gpt-oss-20b", quickA100, ""},
	{placeA100, "vllm serve openai/gpt-oss-120b", largeA100, ""},
	{placeA100, "vllm serve openai/gpt-oss-120b --tensor-parallel-size 2",
		with(largeA100, tensorParallel(2)), ""},
	{placeA100, "vllm serve openai/gpt-oss-120b --tensor-parallel-size 4",
		with(largeA100, tensorParallel(4)), ""},
	{placeAMD, "uv pip install vllm --extra-index-url https://wheels.vllm.ai/rocm", mi300, ""},
	{placeMI300, "vllm serve openai/gpt-oss-120b " + amdLine, mi300, ""},
	{placeMI300, "export HSA_NO_SCRATCH_RECLAIM=1", mi300Old, ""},
	{placeMI300, "export AMDGCN_USE_BUFFER_OPS=0", mi300, ""},
	{placeMI300, "export VLLM_ROCM_USE_AITER=1", mi300, ""},
	{placeMI300, "export VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT4", mi300, ""},
	{placeMI300, "vllm serve openai/gpt-oss-120b", with(mi300, tensorParallel(1)),
		strings.Replace(amdLine, "=8", "=1", 1)},
	{placeMI300, "rocm-smi --showfw | grep MEC | head -n 1 | awk '{print $NF}'", mi300Guide, ""},
	{placeMI355, "export HSA_NO_SCRATCH_RECLAIM=1", mi355, ""},
	{placeMI355, "export AMDGCN_USE_BUFFER_OPS=0", mi355, ""},
	{placeMI355, "export VLLM_ROCM_USE_AITER=1", mi355, ""},
	{placeMI355, "export VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT4", mi355, ""},
	{placeMI355, "vllm serve amd/gpt-oss-120b-w-mxfp4-a-fp8 " + amdLine, mi355, ""},
	{placeEval, "vllm serve openai/gpt-oss-120b --tensor_parallel_size 8 --max-model-len 131072 " +
		"--max-num-batched-tokens 10240 --max-num-seqs 128 --gpu-memory-utilization 0.85 " +
		"--no-enable-prefix-caching",
		with(hopper, func(r *Request) { r.Preset = "eval" }), ""},
	{placeImage, "docker pull --platform linux/amd64 vllm/vllm-openai", hopperImage, ""},
	{placeImage, "docker pull --platform linux/aarch64 vllm/vllm-openai", aarch64, ""},
	{placeImage, "docker tag vllm/vllm-openai vllm/vllm-openai:deploy", hopperImage, ""},
	{placeContainer, `docker run -e HF_TOKEN="$HF_TOKEN" -e HF_HOME="$HF_HOME" --ipc=host ` +
		`--gpus all --entrypoint "/bin/bash" --rm -it vllm/vllm-openai:deploy`, hopperImage, ""},
	{placeLaunch, "export VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1", blackwell, ""},
	{placeLaunch, "export VLLM_MXFP4_USE_MARLIN=1", marlin, ""},
	{placeLaunch, "vllm serve openai/gpt-oss-120b --config GPT-OSS_Blackwell.yaml " +
		"--tensor-parallel-size 1", blackwell, ""},
	{placeLaunch, "vllm serve openai/gpt-oss-120b --config GPT-OSS_Hopper.yaml " +
		"--tensor-parallel-size 1", hopper, ""},
	{placeLimits, "vllm serve openai/gpt-oss-120b --gpu-memory-utilization 0.95 " +
		"--max-num-batched-tokens 1024",
		with(hopper, func(r *Request) { r.Hardware = "H100" }),
		"--config GPT-OSS_Hopper.yaml --tensor-parallel-size 1"},
	{placeTrouble, "export TIKTOKEN_ENCODINGS_BASE=${PWD}/tiktoken_encodings", vocabulary, ""},
	{placeBenchmarks, "docker pull vllm/vllm-openai:v0.10.1", benchmarks20, ""},
	{placeBenchmarks, benchmarksRun + benchmarksCache + "vllm/vllm-openai:v0.10.1 --model " +
		"openai/gpt-oss-20b --tensor-parallel-size 1 --host 0.0.0.0", benchmarks20, ""},
	{placeBenchmarks, benchmarksRun + "vllm/vllm-openai:v0.10.1 --model openai/gpt-oss-120b " +
		"--tensor-parallel-size 2 --host 0.0.0.0",
		with(benchmarks20, func(r *Request) { r.Model, r.TensorParallel = "120b", 2 }),
		benchmarksCache},
}

// The files, whole.
var files = map[string]struct {
	r    Request
	text string
}{
	"GPT-OSS_Blackwell.yaml": {blackwell, "kv-cache-dtype: fp8\n" + hopperFile},
	"GPT-OSS_Hopper.yaml":    {hopper, hopperFile},
	"GPT-OSS_EAGLE3_Blackwell.yaml": {with(blackwell, speculative),
		"kv-cache-dtype: fp8\n" + hopperFile + eagle + "\n"},
	"GPT-OSS_EAGLE3_Hopper.yaml": {with(hopper, speculative), hopperFile + eagle + "\n"},
}

const hopperFile = `no-enable-prefix-caching: true
max-cudagraph-capture-size: 2048
max-num-batched-tokens: 8192
stream-interval: 20
`

func speculative(r *Request) { r.Speculative, r.Version = "eagle3", "v0.17.0" }

// guide is the newest version that the guide speaks of.
func guide(r *Request) { r.Version = "v0.17.0" }

// byName is a variable that a container gets by its name alone: with the same value, but invisible
// in the list of processes.
func byName(text string) string {
	return strings.NewReplacer(`HF_TOKEN="$HF_TOKEN"`, "HF_TOKEN", "HF_TOKEN=$HF_TOKEN",
		"HF_TOKEN").Replace(text)
}

// arguments are a command's, each flag with its value in one spelling. The image's tag that a plan
// gives it is left out.
func arguments(text string) (list []string) {
	all := words([]Line{{Text: text}})
	for i := 0; i < len(all); i++ {
		all[i] = byName(all[i])
		w := strings.TrimSuffix(strings.TrimSuffix(all[i], ":deploy"), ":latest")
		if !strings.HasPrefix(w, "-") {
			list = append(list, w)
			continue
		}
		name, value, _ := strings.Cut(w, "=")
		if !strings.Contains(w, "=") && i+1 < len(all) && !strings.HasPrefix(all[i+1], "-") &&
			name != "--rm" && name != "-it" {
			i++
			value = all[i]
		}
		list = append(list, strings.ReplaceAll(name, "_", "-")+"="+value)
	}
	slices.Sort(list)
	return list
}

// said are all lines of a plan, by their text in one spelling.
func said(p Plan) map[string]string {
	places := map[string]string{}
	for _, l := range slices.Concat(p.Prepare, p.Env, p.Config, p.Args, p.Docker, p.Look) {
		for _, a := range append(arguments(l.Text), strings.ReplaceAll(l.Text, ":latest", "")) {
			places[a] = l.Place
		}
	}
	return places
}

func TestEveryLineOfTheDocuments(t *testing.T) {
	cited := map[string][]string{} // the places that have an argument
	for _, d := range documents {
		for _, a := range arguments(d.text) {
			cited[a] = append(cited[a], d.place)
		}
	}
	for _, d := range documents {
		p, err := Make(d.r)
		if err != nil {
			t.Errorf("%s: %v", d.text, err)
			continue
		}
		places := said(p)
		switch text := byName(strings.TrimPrefix(d.text, "export ")); {
		case places[text] != "": // a line of its own
			if !slices.Contains(cited[arguments(d.text)[0]], places[text]) {
				t.Errorf("%s: %s is cited", d.text, places[text])
			}
		case strings.HasPrefix(text, "rocm-smi"):
			if !strings.Contains(p.String(), text+"\n      # older firmware is slow without it ("+
				d.place+")") {
				t.Errorf("%s: not in\n%s", d.text, p)
			}
		default:
			want := append(arguments(text), arguments(d.more)...)
			slices.Sort(want)
			run := p.Command()
			if len(p.Docker) == 0 {
				run = run[strings.Index(run, "vllm serve"):] // variables are lines of their own
			}
			if got := arguments(run); !slices.Equal(got, want) {
				t.Errorf("%s\nand %s\nbecame\n%s", text, d.more, p.Command())
			}
			for _, a := range arguments(text) {
				if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--model=") &&
					places[a] != placeParameters && !slices.Contains(cited[a], places[a]) {
					t.Errorf("%s: %s is cited to %q", text, a, places[a])
				}
			}
		}
	}
	for name, f := range files {
		p, err := Make(f.r)
		if err != nil || p.File != name || p.YAML() != f.text {
			t.Errorf("%s: %v, %s\n%s", name, err, p.File, p.YAML())
		}
	}
}

// mapped are the beginnings of the documents' other command lines, which coverage.md maps.
var mapped = []string{"COMPUTE_CAPABILITY=", "vllm serve ... --tool-server",
	"vllm serve ... --tool-call-parser", "uv pip install gpt-oss", "mcp run", "vllm bench serve",
	"OPENAI_API_KEY=empty python -m gpt_oss.evals", "mkdir -p /tmp/gpqa_openai",
	"mkdir -p tiktoken_encodings", "wget -O tiktoken_encodings", "vllm serve command runs",
	"vllm serve openai/gpt-oss-120b --config ${YAML_CONFIG}"} // both files' lines are above

var command = regexp.MustCompile(`^(# )?(docker |vllm (serve|bench) |uv |source |export |rocm-smi |` +
	`mkdir |wget |mcp |[A-Z_]+=\S+ python|COMPUTE_CAPABILITY)`)

func TestTheDocumentsHaveNoOtherLine(t *testing.T) {
	const folder = "../../../shared/reference/"
	for _, file := range []string{"seed-gpt-oss-vllm-guide.txt", "seed-vllm-0.10.1-benchmarks.txt"} {
		text, err := os.ReadFile(folder + file)
		if os.IsNotExist(err) {
			t.Skip("the documents are not beside the tree")
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for l := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
			l = strings.TrimPrefix(strings.TrimSpace(strings.TrimSuffix(l, "&")), "# ")
			if !command.MatchString(l) || strings.Contains(l, "Qwen") ||
				strings.Contains(l, "${MODEL_REPO_ID}") {
				continue
			}
			lines++
			known := slices.ContainsFunc(documents, func(d line) bool {
				return slices.Equal(arguments(d.text), arguments(l))
			})
			if !known && !slices.ContainsFunc(mapped, func(m string) bool {
				return strings.HasPrefix(strings.Join(strings.Fields(l), " "), m)
			}) {
				t.Errorf("%s has a line that no plan is held to: %s", file, l)
			}
		}
		if lines < 3 {
			t.Errorf("%s: %d command lines are found", file, lines)
		}
	}
}
