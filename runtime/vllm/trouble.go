// What vLLM's log says when it meets a known trouble, and the cure.

package vllm

import "regexp"

// Trouble is a known fault of a start.
type Trouble struct {
	seen       *regexp.Regexp
	Name, Cure string
	Place      string
}

var troubles = []Trouble{
	{regexp.MustCompile(`Sinks must be of type float32`), "the attention sinks have the wrong type",
		"set VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1, which a plan for B200 does", placeTrouble},
	{regexp.MustCompile(`tl\.language|has no attribute 'language'|tl\.language not defined`),
		"a second Triton is installed",
		"uninstall pytorch-triton and other packages named triton beside vLLM's own", placeTrouble},
	{regexp.MustCompile(`CUDA::nvToolsExt`), "PyTorch is built for another CUDA",
		"install the PyTorch whose version ends in +cu128", "guide, Known Issues"},
	{regexp.MustCompile(`failed to download or load vocab`), "the vocabulary cannot be fetched",
		"set TIKTOKEN_ENCODINGS_BASE to a folder with o200k_base.tiktoken; ossrun serve --engine " +
			"vllm writes one", placeTrouble},
	{regexp.MustCompile(`CUDA out of memory|OutOfMemoryError|No available memory for the cache`),
		"a GPU is out of memory",
		"on one H100: --gpu-memory-utilization 0.95 and --max-num-batched-tokens 1024; on two: " +
			"--gpu-memory-utilization below 0.95", placeLimits},
	{regexp.MustCompile(`CUDA_HOME.*(not set|mismatch)|nvcc.*version.*(older|mismatch)`),
		"another CUDA is used than vLLM was installed with: answers may be garbage",
		"set CUDA_HOME to CUDA 12.8 or newer, the same for installing and serving",
		"guide, Known Issues"},
}

// Diagnose finds a known trouble in a line of vLLM's log.
func Diagnose(line string) (Trouble, bool) {
	for _, t := range troubles {
		if t.seen.MatchString(line) {
			return t, true
		}
	}
	return Trouble{}, false
}
