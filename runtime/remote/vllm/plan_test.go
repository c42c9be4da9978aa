package vllm

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Each row is a line of one of the documents, and the request that gives it.
var rows = []struct {
	name  string
	r     Request
	want  []string // parts of the plan's text
	never []string
}{
	{"A100 20b", Request{Hardware: "A100", Model: "20b", Launch: "local"},
		[]string{"\n  vllm serve openai/gpt-oss-20b\n", "TRITON_ATTN", "Marlin MXFP4"},
		[]string{"--tensor-parallel-size", "--config"}},
	{"A100 120b on two", Request{Hardware: "a100", Model: "120b", TensorParallel: 2,
		Launch: "local"},
		[]string{"\n  vllm serve openai/gpt-oss-120b --tensor-parallel-size 2\n"}, nil},
	{"quickstart install", Request{Hardware: "A100", Model: "20b", Launch: "local"},
		[]string{"uv venv\n", "source .venv/bin/activate\n",
			"uv pip install vllm --torch-backend=auto\n"}, nil},
	{"quickstart docker", Request{Hardware: "A100", Model: "20b"},
		[]string{"--gpus all", "-p 8000:8000", "--ipc=host", "--model openai/gpt-oss-20b"}, nil},
	{"H100 on one", Request{Hardware: "H100", Model: "120b", Launch: "local"},
		[]string{"--config GPT-OSS_Hopper.yaml", "--tensor-parallel-size 1",
			"--gpu-memory-utilization 0.95 --max-num-batched-tokens 1024"},
		[]string{"VLLM_MXFP4_USE_MARLIN", "FLASHINFER", "kv-cache-dtype"}},
	{"H100 on two", Request{Hardware: "H100", Model: "120b", TensorParallel: 2, Launch: "local"},
		[]string{"--tensor-parallel-size 2"}, []string{"--gpu-memory-utilization"}},
	{"H100 on two, too much memory", Request{Hardware: "H100", Model: "120b", TensorParallel: 2,
		Memory: 0.95}, []string{"0.95 runs out of memory on two H100"}, nil},
	{"H100 20b", Request{Hardware: "H100", Model: "20b"}, nil,
		[]string{"--gpu-memory-utilization", "1024"}},
	{"H200", Request{Hardware: "H200", Model: "120b"},
		[]string{"no-enable-prefix-caching: true", "max-cudagraph-capture-size: 2048",
			"max-num-batched-tokens: 8192", "stream-interval: 20"},
		[]string{"--gpu-memory-utilization", "kv-cache-dtype", "speculative-config"}},
	{"v0.12.0 on Hopper", Request{Hardware: "H200", Model: "120b", Version: "v0.12.0"},
		[]string{"VLLM_MXFP4_USE_MARLIN=1"}, nil},
	{"v0.13.0 on Hopper", Request{Hardware: "H200", Model: "120b", Version: "v0.13.0"}, nil,
		[]string{"VLLM_MXFP4_USE_MARLIN=1"}},
	{"B200, newest", Request{Hardware: "B200", Model: "120b", Launch: "local"},
		[]string{"--quantization-config.moe.activation mxfp8", "kv-cache-dtype: fp8",
			"the guide has VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1\n", "for vLLM before v0.24.0"},
		[]string{"  VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1"}},
	{"B200", Request{Hardware: "B200", Model: "120b", Launch: "local", Version: "0.17.0"},
		[]string{"VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1 vllm serve", "kv-cache-dtype: fp8",
			"--config GPT-OSS_Blackwell.yaml"}, nil},
	{"B300 is 10.3", Request{Hardware: "B300", Model: "120b"},
		[]string{"--quantization-config.moe.activation mxfp8"}, []string{"FLASHINFER"}},
	{"EAGLE3, newest", Request{Hardware: "H200", Model: "120b", Speculative: "eagle3"},
		[]string{"gpt-oss-120b-Eagle3-v3", `"num_speculative_tokens":7`, "the guide has speculative-config"},
		[]string{"  speculative-config: '{\"model\":\"nvidia/gpt-oss-120b-Eagle3-v2"}},
	{"EAGLE3 of the 20b", Request{Hardware: "H200", Model: "20b", Speculative: "eagle3"},
		[]string{"RedHatAI/gpt-oss-20b-speculator.eagle3"}, nil},
	{"EAGLE3 on B200", Request{Hardware: "B200", Model: "120b", Speculative: "eagle3",
		Version: "v0.17.0"},
		[]string{"GPT-OSS_EAGLE3_Blackwell.yaml", "kv-cache-dtype: fp8",
			`speculative-config: '{"model":"nvidia/gpt-oss-120b-Eagle3-v2",` +
				`"num_speculative_tokens":3,"method":"eagle3","draft_tensor_parallel_size":1}'`},
		nil},
	{"EAGLE3 on H100", Request{Hardware: "H100", Model: "120b", Speculative: "eagle3"},
		[]string{"GPT-OSS_EAGLE3_Hopper.yaml"}, []string{"kv-cache-dtype"}},
	{"MI300X", Request{Hardware: "MI300X", Model: "120b", TensorParallel: 8, Firmware: 170,
		Launch: "local"}, []string{"HSA_NO_SCRATCH_RECLAIM=1 AMDGCN_USE_BUFFER_OPS=0 " +
		"VLLM_ROCM_USE_AITER=1 VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT4 vllm serve " +
		"openai/gpt-oss-120b --tensor-parallel-size 8 --attention-backend " +
		"ROCM_AITER_UNIFIED_ATTN -cc.pass_config.fuse_rope_kvcache=True " +
		"-cc.use_inductor_graph_partition=True --gpu-memory-utilization 0.95 --block-size=64",
		"https://wheels.vllm.ai/rocm", "Python 3.12, ROCm 7.0 and glibc 2.35"}, nil},
	{"MI325X, newest", Request{Hardware: "MI325X", Model: "20b", Firmware: 177},
		[]string{"-e HSA_NO_SCRATCH_RECLAIM=1"}, nil},
	{"Arc Pro B60", Request{Hardware: "ARC_PRO_B60", Model: "20b"}, []string{
		"vllm/vllm-openai-xpu:latest", "--device /dev/dri", "--max-model-len 8192"},
		[]string{"--gpus"}},
	{"Xeon 6", Request{Hardware: "Xeon6", Model: "20b"}, []string{
		"vllm/vllm-openai-cpu:latest-x86_64", "--shm-size 16g",
		"--max-num-batched-tokens 16384 --gpu-memory-utilization 0.8"}, []string{"--gpus"}},
	{"Ironwood", Request{Hardware: "Ironwood", Model: "120b"}, []string{"vllm/vllm-tpu:nightly",
		"--tensor-parallel-size 2 --data-parallel-size 4", "-e TPU_BACKEND_TYPE=jax"}, nil},
	{"DGX Spark", Request{Hardware: Recognise("NVIDIA GB10"), Model: "120b"},
		[]string{"no recipe for NVIDIA GB10", "--gpus all"}, []string{"--config"}},
	{"V100", Request{Hardware: Recognise("Tesla V100-SXM2-16GB"), Model: "20b"},
		[]string{"no recipe for Tesla V100", "vllm/vllm-openai:latest"}, nil},
	{"MI210", Request{Hardware: Recognise("AMD Instinct MI210"), Model: "20b"},
		[]string{"no recipe for AMD Instinct MI210", "vllm/vllm-openai-rocm", "/dev/kfd"}, nil},
	{"a made-up card", Request{Hardware: "Q9000", Model: "20b"}, []string{"no recipe for Q9000"},
		nil},
	{"A100 of the benchmarks", Request{Hardware: "A100", Model: "20b", Version: "v0.10.1"},
		[]string{"--tensor-parallel-size 1"}, nil},
	{"MI325X, new firmware", Request{Hardware: "MI325X", Model: "120b", Firmware: 177,
		Version: "v0.17.0"}, nil,
		[]string{"HSA_NO_SCRATCH_RECLAIM"}},
	{"MI300X, unknown firmware", Request{Hardware: "MI300X", Model: "120b",
		Version: "v0.17.0"},
		[]string{"rocm-smi --showfw | grep MEC | head -n 1 | awk '{print $NF}'"},
		[]string{"-e HSA_NO_SCRATCH_RECLAIM"}},
	{"MI355X", Request{Hardware: "MI355X", Model: "120b", TensorParallel: 8, Launch: "local"},
		[]string{"HSA_NO_SCRATCH_RECLAIM=1", "vllm serve amd/gpt-oss-120b-w-mxfp4-a-fp8"}, nil},
	{"MI355X 20b", Request{Hardware: "MI355X", Model: "20b"}, []string{"openai/gpt-oss-20b"},
		[]string{"amd/"}},
	{"AMD on another version", Request{Hardware: "MI355X", Model: "20b", Version: "v0.18.0"},
		[]string{"validated on vLLM v0.17.0"}, nil},
	{"R9700", Request{Hardware: "R9700", Model: "20b"}, []string{"no recipe for R9700",
		"(none in the guide)"}, nil},
	{"RTX", Request{Hardware: "RTX5090", Model: "20b"}, []string{"no recipe for RTX5090"}, nil},
	{"evaluation", Request{Hardware: "H100", Model: "120b", Preset: "eval", Launch: "local"},
		[]string{"\n  vllm serve openai/gpt-oss-120b --tensor-parallel-size 8 " +
			"--max-model-len 131072 --max-num-batched-tokens 10240 --max-num-seqs 128 " +
			"--gpu-memory-utilization 0.85 " +
			"--no-enable-prefix-caching\n"}, nil},
	{"throughput", Request{Hardware: "B200", Model: "120b", Preset: "throughput"},
		[]string{"--tensor-parallel-size 1"}, []string{"--max-num-seqs"}},
	{"latency", Request{Hardware: "B200", Model: "120b", Preset: "latency"},
		[]string{"--tensor-parallel-size 8", "--max-num-seqs 8"}, nil},
	{"latency on four", Request{Hardware: "B200", Model: "120b", Preset: "latency",
		TensorParallel: 4}, []string{"--tensor-parallel-size 4", "--max-num-seqs 8"}, nil},
	{"balanced", Request{Hardware: "B200", Model: "120b", Preset: "balanced"},
		[]string{"--tensor-parallel-size 2", "--max-num-seqs 128"}, nil},
	{"lengths and clients", Request{Hardware: "B200", Model: "120b", Input: 1024, Output: 1024,
		Concurrency: 64}, []string{"--max-model-len 2048", "--max-num-seqs 64"}, nil},
	{"containers", Request{Hardware: "H200", Model: "120b", Platform: "linux/aarch64"},
		[]string{"docker pull --platform linux/aarch64 vllm/vllm-openai", "docker tag ",
			"vllm/vllm-openai:deploy", "-e HF_TOKEN ", `-e HF_HOME="$HF_HOME"`}, []string{"HF_TOKEN="}},
	{"the second document", Request{Hardware: "H200", Model: "120b", TensorParallel: 2,
		Version: "v0.10.1"}, []string{"docker run --runtime nvidia --gpus all -v " +
		`$HF_HOME:/root/.cache/huggingface_hub --env "HF_HOME=/root/.cache/huggingface_hub" ` +
		`--env "VLLM_LOGGING_LEVEL=ERROR" --env "TRANSFORMERS_OFFLINE=1" -p 8000:8000 --net host ` +
		"--ipc=host --rm --name vllm vllm/vllm-openai:v0.10.1 --model openai/gpt-oss-120b " +
		"--tensor-parallel-size 2 --host 0.0.0.0"}, nil},
	{"the second document's image", Request{Hardware: "H200", Model: "20b", Version: "0.10.1",
		Vocabulary: "/cache/vocabulary"}, []string{"docker pull vllm/vllm-openai:v0.10.1",
		"-v /cache/vocabulary:/cache/vocabulary", "--model openai/gpt-oss-20b"}, nil},
	{"a version without its letter", Request{Hardware: "H200", Model: "120b", Version: "0.12.0"},
		[]string{"VLLM_MXFP4_USE_MARLIN=1", "vllm/vllm-openai:v0.12.0"}, nil},
	{"A100 120b on one", Request{Hardware: "A100", Model: "120b", Launch: "local"},
		[]string{"\n  vllm serve openai/gpt-oss-120b\n"}, nil},
	{"A100 120b on four", Request{Hardware: "A100", Model: "120b", TensorParallel: 4,
		Launch: "local"},
		[]string{"\n  vllm serve openai/gpt-oss-120b --tensor-parallel-size 4\n"}, nil},
	{"MI350X has the released weights", Request{Hardware: "MI350X", Model: "120b"},
		[]string{"openai/gpt-oss-120b"}, []string{"amd/"}},
	{"memory as asked on AMD", Request{Hardware: "MI300X", Model: "120b", Memory: 0.8},
		[]string{"--gpu-memory-utilization 0.8"}, []string{"--gpu-memory-utilization 0.95"}},
	{"memory as asked on one H100", Request{Hardware: "H100", Model: "120b", Memory: 0.9},
		[]string{"--gpu-memory-utilization 0.9\n", "--max-num-batched-tokens 1024"},
		[]string{"--gpu-memory-utilization 0.95"}},
	{"evaluation as asked", Request{Hardware: "H100", Model: "120b", Preset: "eval", Memory: 0.7,
		Concurrency: 9}, []string{"--gpu-memory-utilization 0.7", "--max-num-seqs 9"},
		[]string{"0.85", "--max-num-seqs 128"}},
	{"behind our port", Request{Hardware: "H200", Model: "20b", HasFront: true, Host: "127.0.0.1",
		Port: 4321}, []string{"-p 127.0.0.1:4321:4321", "--host 0.0.0.0 --port 4321"},
		[]string{"no-enable-prefix-caching"}},
	{"Grace is an ARM", Request{Hardware: "GB200", Model: "120b"},
		[]string{"docker pull --platform linux/aarch64"}, nil},
	{"vocabulary", Request{Hardware: "H200", Model: "20b", Vocabulary: "/cache/vocabulary"},
		[]string{"TIKTOKEN_ENCODINGS_BASE=/cache/vocabulary", "cl100k_base belongs to older"}, nil},
	{"words of vLLM win", Request{Hardware: "MI300X", Model: "120b", Launch: "local",
		Extra: []string{"-cc.pass_config.fuse_rope_kvcache=False", "--block-size 32", "--seed 1"}},
		[]string{"-cc.pass_config.fuse_rope_kvcache=False", "--block-size 32", "--seed 1",
			"-cc.use_inductor_graph_partition=True"},
		[]string{"--block-size=64", "fuse_rope_kvcache=True"}},
	{"two machines by Ray", Request{Hardware: "H200", Model: "120b", TensorParallel: 8,
		Machines: MachineNames(2), Spread: "tp-pp", Version: "v0.17.0"}, []string{
		"ray start --head --port=6379 # on the first machine\n      # before " +
			"the others (none in the guide)\n  ray start --address=HEAD:6379",
		"--distributed-executor-backend ray --pipeline-parallel-size 2"}, []string{"--nnodes"}},
	{"two machines", Request{Hardware: "H200", Model: "120b", Launch: "local", Port: 8001,
		Machines: []string{"127.0.0.2", "127.0.0.3"}}, []string{
		"The command on 127.0.0.2\n  vllm serve openai/gpt-oss-120b ", " --port 8001 --host 127.0.0.3\n",
		"--enable-prompt-tokens-details",
		"ossrun vllm serve 120b --upstream http://127.0.0.2:8001,http://127.0.0.3:8001"},
		[]string{"stream-interval", "ray", "--nnodes"}},
	{"one model on two machines", Request{Hardware: "H200", Model: "120b", TensorParallel: 8,
		Machines: MachineNames(2), Spread: "tp"}, []string{
		"GLOO_SOCKET_IFNAME=$IFACE_NAME NCCL_SOCKET_IFNAME=$IFACE_NAME vllm serve",
		"--nnodes 2 --tensor-parallel-size 16 --node-rank 0 --master-addr MACHINE1\n",
		"--node-rank 1 --master-addr MACHINE1 --headless\n",
		"ossrun vllm serve 120b --upstream http://MACHINE1:8000\n"}, []string{"ray"}},
	{"experts on three machines", Request{Hardware: "B200", Model: "120b", Spread: "dep",
		Machines: MachineNames(3)}, []string{"--enable-expert-parallel --data-parallel-size 3",
		"--node-rank 2 --master-addr MACHINE1 --headless"}, []string{"ray"}},
	{"a folder", Request{Hardware: "H200", Model: "/data/ft", Folder: "/data/ft"},
		[]string{"-v /data/ft:/data/ft:ro", "--model /data/ft"}, nil},
}

func TestEveryRecipe(t *testing.T) {
	for _, row := range rows {
		p, err := Make(row.r)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		text := p.String()
		for _, want := range row.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", row.name, want, text)
			}
		}
		for _, never := range row.never {
			if strings.Contains(text, never) {
				t.Errorf("%s: %q is in\n%s", row.name, never, text)
			}
		}
		for _, l := range slices.Concat(p.Prepare, p.Env, p.Config, p.Args, p.Docker, p.Warnings) {
			if l.Why == "" || l.Place == "" {
				t.Errorf("%s: no reason or place for %q", row.name, l.Text)
			}
		}
		for kind, text := range map[string]string{"compose": p.Compose(row.r.Model, 8000),
			"k8s": p.K8s(row.r.Model, 8000)} {
			if strings.Contains(text, ":deploy") || strings.Contains(text, "TIKTOKEN") {
				t.Errorf("%s as %s names what only this machine has:\n%s", row.name, kind, text)
			}
			for document := range strings.SplitSeq(text, "\n---\n") {
				var v map[string]any
				if err := yaml.Unmarshal([]byte(document), &v); err != nil || len(v) == 0 {
					t.Errorf("%s as %s: %v\n%s", row.name, kind, err, document)
				}
			}
		}
	}
}

func TestRecognise(t *testing.T) {
	for gpu, want := range map[string]string{"NVIDIA H100 80GB HBM3": "H100", "NVIDIA B200": "B200",
		"NVIDIA A100-SXM4-80GB": "A100", "AMD Instinct MI300X": "MI300X", "NVIDIA GB200": "GB200",
		"NVIDIA GH200 480GB": "GH200", "NVIDIA H200": "H200",
		"AMD Radeon AI PRO R9700": "R9700", "NVIDIA GeForce RTX 4090": "RTX"} {
		if got := Recognise(gpu); got != want {
			t.Errorf("%s: %s", gpu, got)
		}
	}
	if got := Recognise("Tesla V100"); got != "Tesla V100" {
		t.Error(got)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Hardware: "H100", Model: "20b", Extra: []string{"--swap-space 4"}},
			"vLLM has no --swap-space since v0.18.0. Use --kv-offloading-size"},
		{Request{Hardware: "H100", Model: "20b", TensorParallel: 3}, "1, 2, 4 or 8"},
		{Request{Hardware: "H100", Model: "20b", Preset: "fast"}, "latency, balanced, eval"},
		{Request{Hardware: "A100", Model: "20b", Speculative: "eagle3"}, "recipes for H100"},
		{Request{Hardware: "H100", Model: "120b", Speculative: "medusa"}, "use eagle3"},
		{Request{Hardware: "H100", Model: "20b", Launch: "podman"}, "docker or local"},
		{Request{Hardware: "H100", Model: "20b", Launch: "docker", Spread: "tp",
			Machines: MachineNames(2)}, "--launch local"},
		{Request{Hardware: "H100", Model: "20b", Spread: "tp"}, "needs the machines"},
		{Request{Hardware: "H100", Model: "20b", Spread: "all", Machines: MachineNames(2)},
			"tp, tp-pp or dep"},
		{Request{Hardware: "H100", Model: "120b", Speculative: "eagle3", Preset: "eval"},
			"no draft model"},
	} {
		if _, err := Make(c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}

func TestTroubles(t *testing.T) {
	for line, want := range map[string]string{
		"ERROR [multiproc_executor.py:559] AssertionError: Sinks must be of type float32": "sinks",
		"AttributeError: module 'triton' has no attribute 'language'":                     "Triton",
		`target contains: CUDA::nvToolsExt but`:                                           "PyTorch",
		"openai_harmony.HarmonyError: error downloading or loading vocab file: failed to " +
			"download or load vocab error": "vocabulary",
		"RuntimeError: CUDA_HOME environment variable is not set":       "another CUDA",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate": "memory",
	} {
		if got, ok := Diagnose(line); !ok || !strings.Contains(got.Name, want) || got.Cure == "" {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if _, ok := Diagnose("INFO: Application startup complete."); ok {
		t.Error("all is well")
	}
}

// A manifest's arguments are those that a shell would make of the plan's.
func TestWords(t *testing.T) {
	got := words([]Line{{Text: `--a 'b "c" d' --e="f g"`}, {Text: "--h  ''"}})
	if want := []string{"--a", `b "c" d`, "--e=f g", "--h", ""}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestSoftware(t *testing.T) {
	for _, c := range []struct {
		s    Software
		want string // of the refusal; "": none
	}{
		{Software{}, ""}, {Software{"7.0.2", "2.39"}, ""}, {Software{"7.0", "2.35"}, ""},
		{Software{"6.4.1", "2.39"}, "needs ROCm 7.0, not ROCm 6.4.1: use --launch docker"},
		{Software{"7.1.0", ""}, "needs ROCm 7.0"}, {Software{"", "2.31"}, "needs glibc 2.35"},
	} {
		r := Request{Hardware: "MI300X", Model: "20b", Launch: "local", Software: c.s}
		if _, err := Make(r); (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.s, err)
		}
		r.Launch = "docker"
		if _, err := Make(r); err != nil {
			t.Errorf("%+v in a container: %v", c.s, err)
		}
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "opt/rocm/.info"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "opt/rocm/.info/version"), []byte("7.0.2-56\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if s := FindSoftware(t.Context(), root); s.ROCm != "7.0.2" {
		t.Errorf("%+v", s)
	}
}

func TestNoMoreGPUsThanThereAre(t *testing.T) {
	for _, c := range []struct{ gpus, asked, want int }{{1, 0, 1}, {3, 0, 2}, {4, 4, 4}, {8, 0, 8},
		{0, 0, 8}, {2, 4, 0}} {
		p, err := Make(Request{Hardware: "B200", Model: "120b", Preset: "latency", GPUs: c.gpus,
			TensorParallel: c.asked})
		if p.TensorParallel != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%+v: %d, %v", c, p.TensorParallel, err)
		}
	}
}

// In a manifest clients reach this program alone, which asks the plan's server by its name.
func TestManifestsHaveTheFront(t *testing.T) {
	p, err := Make(Request{Hardware: "B200", Model: "120b", HasFront: true, Port: SecondPort(8000)})
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Ports, Command []string
		}
	}
	if err := yaml.Unmarshal([]byte(p.Compose("120b", 8000)), &compose); err != nil {
		t.Fatal(err)
	}
	front, behind := compose.Services["ossrun"], compose.Services["vllm"]
	if !slices.Equal(front.Ports, []string{"8000:8000"}) || behind.Ports != nil ||
		!slices.Contains(front.Command, "http://vllm:8001") ||
		strings.Join(behind.Command[len(behind.Command)-2:], " ") != "--port 8001" {
		t.Errorf("%+v", compose)
	}
	type container struct {
		Args    []string
		Restart string `yaml:"restartPolicy"`
	}
	for document := range strings.SplitSeq(p.K8s("120b", 8000), "\n---\n") {
		var v struct {
			Kind string
			Spec struct {
				Ports    []struct{ Port int }
				Template struct {
					Spec struct {
						Containers []container
						Init       []container `yaml:"initContainers"`
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &v); err != nil {
			t.Fatal(err)
		}
		switch pod := v.Spec.Template.Spec; v.Kind {
		case "Service":
			if len(v.Spec.Ports) != 1 || v.Spec.Ports[0].Port != 8000 {
				t.Errorf("%+v", v)
			}
		case "Deployment":
			if len(pod.Containers) != 1 || len(pod.Init) != 1 ||
				!slices.Contains(pod.Containers[0].Args, "http://127.0.0.1:8001") ||
				pod.Init[0].Restart != "Always" ||
				!slices.Contains(pod.Init[0].Args, "8001") {
				t.Errorf("%+v", v)
			}
		}
	}
}

// A manifest's pods have the GPUs that vLLM's parallel arguments ask for, and no more.
func TestGPUsOfManifests(t *testing.T) {
	for _, spread := range append([]string{""}, Spreads...) {
		for _, machines := range [][]string{nil, MachineNames(2), MachineNames(4)} {
			if spread != "" && machines == nil {
				continue
			}
			p, err := Make(Request{Hardware: "H200", Model: "120b", TensorParallel: 8, Spread: spread,
				Machines: machines, HasFront: true, Port: 8001})
			if err != nil {
				t.Fatal(err)
			}
			text := p.K8s("120b", 8000)
			limits := regexp.MustCompile(`nvidia.com/gpu: (\d+)`).FindAllStringSubmatch(text, -1)
			want := max(1, len(machines)) // pods
			have := 0
			for _, l := range limits {
				n, _ := strconv.Atoi(l[1])
				have = n * want
			}
			asked := 1
			all := strings.Join(words(p.Args), " ")
			for _, flag := range []string{"tensor", "pipeline", "data"} {
				if m := regexp.MustCompile("--" + flag + `-parallel-size (\d+)`).FindStringSubmatch(
					all); m != nil {
					n, _ := strconv.Atoi(m[1])
					asked *= n
				}
			}
			if spread == "" {
				asked *= want // each has its own
			}
			kind := map[bool]string{true: "LeaderWorkerSet", false: "StatefulSet"}[spread != ""]
			if have != asked || len(machines) > 0 && !strings.Contains(text, "kind: "+kind) {
				t.Errorf("%q on %d: %d GPUs asked of %d\n%s", spread, want, asked, have, text)
			}
		}
	}
	for _, typed := range []string{"--data-parallel-size 4", "-dp=4", "-pp 4",
		"--pipeline-parallel-size=4"} {
		p, err := Make(Request{Hardware: "H200", Model: "120b", TensorParallel: 2, HasFront: true,
			Port: 8001, Extra: []string{typed}})
		if err != nil {
			t.Fatal(err)
		}
		if k8s, compose := p.K8s("120b", 8000), p.Compose("120b", 8000); !strings.Contains(k8s,
			"nvidia.com/gpu: 8}") || !strings.Contains(compose, "count: 8,") {
			t.Errorf("%s\n%s\n%s", typed, k8s, compose)
		}
	}
}
