// What a machine has that AMD's wheel of vLLM depends on.

package vllm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Software are versions found on a machine, "" where unknown. Python is not among them: uv fetches
// the one that is needed.
type Software struct {
	ROCm  string // such as 7.0.2
	Glibc string // such as 2.39
}

// FindSoftware looks at this machine. root is where its files are, "/".
func FindSoftware(ctx context.Context, root string) (s Software) {
	if text, err := os.ReadFile(filepath.Join(root, "opt/rocm/.info/version")); err == nil {
		s.ROCm, _, _ = strings.Cut(strings.TrimSpace(string(text)), "-") // 7.0.2-56
	}
	// it says "glibc 2.39"; a system without glibc has no such answer
	if out, err := exec.CommandContext(ctx, "getconf", "GNU_LIBC_VERSION").Output(); err == nil {
		_, s.Glibc, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	}
	return s
}

// wheel says why the wheel cannot run here.
func (s Software) wheel() error {
	if major, minor, known := version(s.ROCm); known && (major != 7 || minor != 0) {
		return fmt.Errorf("vLLM's wheel for AMD needs ROCm 7.0, and ROCm %s is here: use --launch "+
			"docker (%s)", s.ROCm, placeAMD)
	}
	if major, minor, known := version(s.Glibc); known && (major < 2 || major == 2 && minor < 35) {
		return fmt.Errorf("vLLM's wheel for AMD needs glibc 2.35 or newer, and %s is here: use "+
			"--launch docker (%s)", s.Glibc, placeAMD)
	}
	return nil
}

func version(text string) (major, minor int, known bool) {
	n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return major, minor, n == 2
}
