// Known troubles in vLLM's log, their cures, and why our own engine avoids them.

package vllm

import (
	"regexp"
	"slices"
)

// Trouble is a known fault of a start.
type Trouble struct {
	pattern  *regexp.Regexp
	families []string // of GPUs that are affected; empty: all
	Name     string   `json:"name"`
	Cure     string   `json:"cure"`
	Place    string   `json:"place"`
	NotHere  string   `json:"not_here"` // why our own engine avoids it
}

var (
	nvidia     = []string{"ampere", "hopper", "blackwell"}
	ownKernels = "the kernels are in the program, made ahead; no Triton, no PyTorch and no CUDA " +
		"toolkit is loaded"
)

var troubles = []Trouble{
	{regexp.MustCompile(`Sinks must be of type float32`), []string{"blackwell"}, "the attention sinks have the wrong type",
		"give --quantization-config.moe.activation mxfp8, as a plan for B200 does; before " +
			"v0.24.0 set VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1", placeTrouble,
		"there is one attention kernel for each kind of GPU, and its sinks are float32"},
	{regexp.MustCompile(`tl\.language|has no attribute 'language'|tl\.language not defined`), nvidia,
		"a second Triton is installed",
		"uninstall pytorch-triton and other packages named triton beside vLLM's own", placeTrouble,
		ownKernels},
	{regexp.MustCompile(`CUDA::nvToolsExt`), nvidia, "PyTorch is built for another CUDA",
		"install the PyTorch whose version ends in +cu128", "guide, Known Issues", ownKernels},
	{regexp.MustCompile(`failed to download or load vocab`), nil, "the vocabulary cannot be fetched",
		"set TIKTOKEN_ENCODINGS_BASE to a folder with o200k_base.tiktoken; ossrun serve --engine " +
			"vllm writes one", placeTrouble, "the vocabulary is in the program"},
	{regexp.MustCompile(`CUDA out of memory|OutOfMemoryError|No available memory for the cache`),
		[]string{"hopper"},
		"a GPU is out of memory",
		"on one H100: --gpu-memory-utilization 0.95 and --max-num-batched-tokens 1024; on two: " +
			"--gpu-memory-utilization below 0.95", placeLimits,
		"memory is planned before weights are loaded, by what is free; what does not fit is said " +
			"then"},
	{regexp.MustCompile(`CUDA_HOME.*(not set|mismatch)|nvcc.*version.*(older|mismatch)`), nvidia,
		"another CUDA is used than vLLM was installed with: answers may be garbage",
		"set CUDA_HOME to CUDA 12.8 or newer, the same for installing and serving",
		"guide, Known Issues", ownKernels},
}

// TroublesOn lists the known troubles on GPUs of these names.
func TroublesOn(gpus ...string) []Trouble {
	list := []Trouble{}
	for _, t := range troubles {
		if slices.ContainsFunc(gpus, func(gpu string) bool {
			c := chipOf(Recognise(gpu))
			return c.Family != "other" &&
				(len(t.families) == 0 || slices.Contains(t.families, c.Family))
		}) {
			list = append(list, t)
		}
	}
	return list
}

// Diagnose finds a known trouble in a line of vLLM's log.
func Diagnose(line string) (Trouble, bool) {
	for _, t := range troubles {
		if t.pattern.MatchString(line) {
			return t, true
		}
	}
	return Trouble{}, false
}
