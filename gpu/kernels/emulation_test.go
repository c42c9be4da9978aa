package kernels

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every kernel runs by emulation against the reference of kerneltest, in both sizes of warp and in
// every layout of matrix fragments. The cases are written in C++; each becomes a subtest of its own
// here.
func TestEmulation(t *testing.T) {
	matrix := []string{"KERNELS=matrix_rate.cu prefill.cu prefill_attend.cu quantize.cu rows.cu " +
		"stream_experts.cu"}
	for _, x := range drivertest.Some(1, []struct {
		name        string
		environment []string
		args        []string
	}{{"some", nil, append([]string{"nv"}, someCases...)}, {"nv", nil, []string{"nv"}},
		{"cdna", nil, []string{"cdna"}}, {"gfx11", matrix, []string{"gfx11", "matrix"}},
		{"gfx12", matrix, []string{"gfx12", "matrix"}}}) {
		t.Run(x.name, func(t *testing.T) { kernelCases(t, x.environment, x.args) })
	}
}

// Cases that run every kernel.
var someCases = []string{"attend_f8", "attend_bf16", "attend_window", "matrix", "linear", "norm",
	"qkv", "experts_one_row", "experts_q8", "mx_quantize", "route", "write_kv", "sample_masked",
	"top_logits", "stats", "rope", "combine", "copy_rows", "round_rows", "angles",
	"embed", "edit", "quantize", "stream_one", "stream_two", "stream_same"}

// The shipped texts, instruction by instruction, in the place of the sources (kerneltest/ptx.h):
// some cases of every kernel. CI's step gpu runs it, .ci/long gpu-isa has all of them.
func TestPTXComputesWhatTheSourcesDo(t *testing.T) {
	drivertest.Long(t)
	for _, a := range Archs {
		if !a.HasText() {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), a.Text())
			hosttest.Check(t, os.WriteFile(path, image(t, a), 0o644))
			said := kernelCases(t, []string{"OSSRUN_PTX=" + path},
				append([]string{"nv"}, someCases...))
			if len(said) != 1 || strings.Contains(said[0], "; not") {
				t.Errorf("kernels of the text were not run: %q", said)
			}
			t.Log(said)
		})
	}
}

// Shipped code objects of AMD's likewise (kerneltest/amd.h), one with waves of 64 and one of 32:
// CI's step gpu runs it, .ci/long gpu-isa amd has all of them.
func TestAMDImagesComputeWhatTheSourcesDo(t *testing.T) {
	drivertest.Long(t)
	for name, layout := range map[string]string{"gfx942": "cdna", "gfx1201": "gfx12"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			hosttest.Check(t, os.WriteFile(path, []byte(readImage(t, name)), 0o644))
			said := kernelCases(t, []string{"KERNELS=norm.cu", "OSSRUN_AMD=" + path},
				append([]string{layout}, someCases...))
			if len(said) != 1 || strings.Contains(said[0], "; not") {
				t.Errorf("kernels of the image were not run: %q", said)
			}
			t.Log(said)
		})
	}
}

// readImage is all that kerneltest wants to know of a code object.
func readImage(t *testing.T, name string) string {
	t.Helper()
	readelf, objdump := tool(t, "llvm-readelf-22"), tool(t, "llvm-objdump-22")
	file := filepath.Join("..", "..", "assets", "kernels", name+".co")
	return output(t, readelf, "--notes", "--symbols", file) +
		output(t, objdump, "-s", "-j", ".rodata", file) + output(t, objdump, "-d", file)
}

// An image without a wait or a write-back of a cache is wrong there, and what the interpreter does
// not know is an error.
func TestAMDInterpreterNotices(t *testing.T) {
	drivertest.Long(t)
	texts := map[string]string{}
	for _, c := range []struct{ image, layout, without, instead, cases, says string }{
		{"gfx1201", "gfx12", "s_wait_loadcnt 0x0", "s_nop 0", "norm_wide", "FAIL norm_wide"},
		{"gfx1201", "gfx12", "s_wait_storecnt 0x0", "s_nop 0", "decode_experts_one_row",
			"FAIL decode_experts"},
		{"gfx942", "cdna", "buffer_wbl2 sc1", "s_nop 0", "decode_experts_one_row",
			"FAIL decode_experts"},
		{"gfx942", "cdna", "s_barrier", "s_setpc_b64 s[0:1]", "norm_small", "s_setpc_b64"},
	} {
		if texts[c.image] == "" {
			texts[c.image] = readImage(t, c.image)
		}
		text := strings.ReplaceAll(texts[c.image], "\t"+c.without+" ", "\t"+c.instead+" ")
		path := filepath.Join(t.TempDir(), c.image)
		hosttest.Check(t, os.WriteFile(path, []byte(text), 0o644))
		command := exec.Command("kerneltest/run.sh", c.layout, c.cases)
		command.Env = append(os.Environ(), "KERNELS=norm.cu", "OSSRUN_AMD="+path)
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s with %s for %s: %v\n%s", c.image, c.instead, c.without, err, out)
		}
	}
}

// kernelCases runs kerneltest, each of its cases as a subtest, and returns the other lines that it
// wrote.
func kernelCases(t *testing.T, environment, args []string) (said []string) {
	var errors bytes.Buffer
	command := exec.Command("kerneltest/run.sh", args...)
	command.Stderr = &errors
	command.Env = append(os.Environ(), environment...)
	out, err := command.Output()
	cases := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		verdict, rest, _ := strings.Cut(lines.Text(), " ")
		if verdict != "ok" && verdict != "FAIL" {
			said = append(said, lines.Text())
			continue
		}
		name, why, _ := strings.Cut(rest, " ")
		cases++
		t.Run(strings.TrimSuffix(name, ":"), func(t *testing.T) {
			if verdict != "ok" {
				t.Error(why)
			}
		})
	}
	if err != nil {
		t.Errorf("kerneltest: %v\n%s", err, errors.Bytes())
	}
	if cases == 0 {
		t.Error("no case ran")
	}
	return said
}
