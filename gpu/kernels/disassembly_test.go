package kernels

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What a step of many rows launches on every architecture, and the instruction of the matrix unit
// that each of these kernels is made for.

// matrixKernels are the kernels of prefill's matrices and attention by target, as the launches name
// them; with those of the experts the loop of the target's unit, with attention that of the unit
// every card has.
func matrixKernels(t Target) (dense, experts, attention []string) {
	const p = Pointer(256)
	r, x := Rows{p, 100}, Activations{X: p}
	if t.Unit == MX {
		x = Activations{Q: p, D: p}
	}
	w := ExpertMatrix{p, p, p}
	product := Product{r, p, p, p, p, 64, 130, 130, false, ""}
	dense = []string{t.PrefillLinears([]Product{product}, Rounded, Scratch{}).Kernel}
	experts = []string{t.PrefillExperts(Experts{200, 8, p, p, p, x, w, 96, 64, 2, 7},
		Rounded).Kernel,
		t.PrefillExperts(Experts{200, 8, p, p, p, x, w, 64, 96, 0, 0}, Rounded).Kernel,
		t.MatrixRate(t.Unit, 1, nil, 1).Kernel}
	for _, e := range []Element{BF16, E4M3} {
		attention = append(attention, t.PrefillAttend(Attention{r, p, p, Cache{Elements: e}, p,
			Heads{8, 2, 64}, 0, 0.125}, Rounded, 0).Kernel)
	}
	attention = append(attention, t.MatrixRate(MMA, 1, nil, 1).Kernel)
	return dense, experts, attention
}

// dispatch is the table: the instruction of a card of each architecture.
var dispatch = map[string]struct{ dense, experts, attention string }{
	"sm_80":   {"HMMA", "HMMA", "HMMA"},
	"sm_90a":  {"HGMMA", "HGMMA", "HMMA"},
	"sm_100a": {"HMMA", "HMMA", "HMMA"},
	"sm_103a": {"HMMA", "HMMA", "HMMA"},
	"sm_120":  {"HMMA", "HMMA", "HMMA"},
	"sm_120a": {"HMMA", "OMMA", "HMMA"},
	"sm_121a": {"HMMA", "OMMA", "HMMA"},
	"gfx90a":  {"v_mfma_f32_16x16x16", "v_mfma_f32_16x16x16", "v_mfma_f32_16x16x16"},
	"gfx942":  {"v_mfma_f32_16x16x16", "v_mfma_f32_16x16x16", "v_mfma_f32_16x16x16"},
	"gfx950":  {"v_mfma_f32_16x16x16", "v_mfma_scale_f32_16x16x128", "v_mfma_f32_16x16x16"},
	"gfx1100": {"v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16"},
	"gfx1101": {"v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16"},
	"gfx1151": {"v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16"},
	"gfx1200": {"v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16"},
	"gfx1201": {"v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f32_16x16x16_bf16"},
}

// Every architecture's prefill is dispatched to kernels that its image has; in PTX the instruction
// can be read without tools.
func TestDispatchReachesTheMatrixUnit(t *testing.T) {
	for _, a := range Archs {
		if _, ok := dispatch[a.Name]; !ok {
			t.Errorf("%s is not in the table", a.Name)
			continue
		}
		data := image(t, a)
		have, err := Names(data)
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		dense, experts, attention := matrixKernels(a.target())
		for _, name := range slices.Concat(dense, experts, attention) {
			if !slices.Contains(have, name) {
				t.Errorf("%s has no %s", a.Name, name)
			}
		}
		if !a.HasText() {
			continue
		}
		for _, name := range slices.Concat(dense, experts, attention) {
			ptx, err := Only(data, name)
			if err != nil || !bytes.Contains(ptx, []byte("mma.sync")) {
				t.Errorf("%s: %s has no mma.sync (%v)", a.Name, name, err)
			}
		}
	}
}

// Where PTX says ld without a memory, the card asks each address which one it is, and the loads
// wait for shared memory's as well: not in the kernels that live on what they have asked for
// (gpu.h, from_gpu_memory).
func TestMatrixKernelsKnowWhichMemory(t *testing.T) {
	generic := regexp.MustCompile(`\sld(\.volatile)?(\.v[24])?\.[bfsu][0-9]+\s.*`)
	if !generic.MatchString("\tld.v4.u32 \t{%r1, %r2, %r3, %r4}, [%rd1];") ||
		generic.MatchString("\tld.global.v4.u32 \t{%r1, %r2, %r3, %r4}, [%rd1];") {
		t.Fatal("the expression does not know such a load")
	}
	for _, a := range Archs {
		if !a.HasText() {
			continue
		}
		data := image(t, a)
		dense, experts, attention := matrixKernels(a.target())
		for _, name := range slices.Concat(dense, experts, attention) {
			ptx, err := Only(data, name)
			if err != nil {
				t.Fatalf("%s: %v", a.Name, err)
			}
			if load := generic.Find(ptx); load != nil {
				t.Errorf("%s: %s has %q", a.Name, name, bytes.TrimSpace(load))
			}
		}
	}
}

// The units in the machine's own words: code objects by LLVM's disassembler, cubins by NVIDIA's,
// and text that has no cubin through its assembler. ptxas.sh brings both; CI's step gpu runs this
// and lets no part be skipped.
func TestDisassemblyShowsTheMatrixUnit(t *testing.T) {
	drivertest.Long(t)
	for _, a := range Archs {
		t.Run(a.Name, func(t *testing.T) {
			dense, experts, attention := matrixKernels(a.target())
			disassemble := codeObject
			if a.Vendor == NVIDIA {
				disassemble = machine
			}
			text := disassemble(t, a, slices.Concat(dense, experts, attention))
			want := dispatch[a.Name]
			for _, part := range []struct {
				names       []string
				instruction string
			}{{dense, want.dense}, {experts, want.experts}, {attention, want.attention}} {
				for _, name := range part.names {
					if a.Vendor == NVIDIA && genericLoad.MatchString(text[name]) {
						t.Errorf("%s asks which memory it reads: %s", name,
							genericLoad.FindString(text[name]))
					}
					if !strings.Contains(text[name], part.instruction) {
						t.Errorf("%s has no %s in %d bytes of disassembly", name, part.instruction,
							len(text[name]))
					}
				}
			}
		})
	}
}

// genericLoad is what TestMatrixKernelsKnowWhichMemory looks for, in machine code.
var genericLoad = regexp.MustCompile(`\sLD(\.[A-Z0-9]+)* R.*`)

// A kernel that spills registers to memory, on AMD: its metadata counts them. Scalar registers that
// go to lanes of vector registers stay in the register file: a kernel that has no memory of its own
// spills none to it.
func TestCodeObjectsDoNotSpill(t *testing.T) {
	drivertest.Long(t)
	readelf := tool(t, "llvm-readelf-22")
	for _, a := range Archs {
		if a.Vendor != AMD {
			continue
		}
		text := output(t, readelf, "--notes", filepath.Join("..", "..", "assets", "kernels",
			a.File()))
		// private: bytes a thread; in the notes it comes before the counts
		kernels, name, private := 0, "", ""
		for line := range strings.SplitSeq(text, "\n") {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch value = strings.TrimSpace(value); key {
			case ".symbol":
				name, kernels = value, kernels+1
			case ".name": // of the kernel, or of an argument before it
				name = value
			case ".private_segment_fixed_size":
				private = value
			case ".sgpr_spill_count", ".vgpr_spill_count":
				if value != "0" && (private != "0" || key == ".vgpr_spill_count") {
					t.Errorf("%s: %s has %s %s", a.Name, name, key, value)
				}
			}
		}
		if kernels == 0 {
			t.Errorf("%s: no kernel in the notes", a.Name)
		}
	}
}

// tool finds a program by one of its names, in the path or where ptxas.sh puts it.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip(err)
		}
		cache = filepath.Join(home, ".cache")
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if found, _ := filepath.Glob(filepath.Join(cache, "ossrun-ci", "ptxas-*", "bin",
			name)); len(found) > 0 {
			return found[0]
		}
	}
	t.Skipf("%s is not here: apt-get install llvm-22, or gpu/kernels/ptxas.sh", names[0])
	return ""
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	var errors bytes.Buffer
	command := exec.Command(program, args...)
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, errors.Bytes())
	}
	return string(out)
}

// codeObject disassembles kernels of a code object.
func codeObject(t *testing.T, a Arch, kernels []string) map[string]string {
	objdump, file := tool(t, "llvm-objdump-22"), filepath.Join("..", "..", "assets", "kernels",
		a.File())
	text := map[string]string{}
	for _, name := range kernels {
		text[name] = output(t, objdump, "-d", "--disassemble-symbols="+name, file)
	}
	return text
}

// machine disassembles kernels of a cubin, or of text that has none.
func machine(t *testing.T, a Arch, kernels []string) map[string]string {
	ptxas, nvdisasm := tool(t, "ptxas"), tool(t, "nvdisasm")
	from, cubin := filepath.Join(t.TempDir(), "kernels"), image(t, a)
	if i := slices.IndexFunc(Cubins, func(c Cubin) bool { return c.Name == a.Name }); i >= 0 {
		var err error
		if cubin, err = Cubins[i].Read(assets.Kernels); err != nil {
			t.Fatal(err)
		}
	} else {
		ptx, err := Only(cubin, kernels...)
		hosttest.Check(t, err)
		hosttest.Check(t, os.WriteFile(from, ptx, 0o644))
		output(t, ptxas, "-arch="+a.Name, from, "-o", from)
		if cubin, err = os.ReadFile(from); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.Check(t, os.WriteFile(from, cubin, 0o644))
	text := map[string]string{}
	for section := range strings.SplitSeq(output(t, nvdisasm, "-c", from),
		"//---------------------") {
		header, body, _ := strings.Cut(section, "\n")
		if name, ok := strings.CutPrefix(strings.Fields(header + " -")[0], ".text."); ok {
			text[name] = body
		}
	}
	return text
}
