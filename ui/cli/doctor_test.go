package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

const goldenT2 = "../../testdata/model/T2"

// runDoctor runs ossrun doctor in process.
func runDoctor(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runHere(t.Context(), append([]string{"doctor"}, args...)...)
}

// doctorJSON runs it with --json: stdout must be one object and nothing else.
func doctorJSON(t *testing.T, wantCode int, args ...string) (r doctor.Report) {
	t.Helper()
	code, stdout, stderr := runDoctor(t, append([]string{"--json"}, args...)...)
	if code != wantCode {
		t.Fatalf("exit code %d, not %d: %s\n%s", code, wantCode, stderr, stdout)
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	if err := d.Decode(&r); err != nil {
		t.Fatalf("stdout is no JSON: %v\n%s", err, stdout)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("stdout has more than one object:\n%s", stdout)
	}
	return r
}

func TestDoctorLooks(t *testing.T) {
	code, stdout, stderr := runDoctor(t, "--verbose")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"✓ CPU ", "✓ Memory ", " free\n", "device ", "20b: ", "120b: ",
		"demo: built in", "config.yaml (", "scalar"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("missing %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "golden") || strings.Contains(stdout, "selftest") {
		t.Errorf("a check ran unasked:\n%s", stdout)
	}
}

// recordedMachine is what doctor finds on a machine of which nothing is measured here.
func recordedMachine() *doctor.Report {
	r := &doctor.Report{}
	r.Machine = doctor.Machine{OS: "Debian", CPU: "EPYC", Cores: 2,
		ISAs: []string{"scalar", "avx2"}}
	r.Cache, r.Port.Address = doctor.Cache{Path: "/hub", Free: 20e9}, "127.0.0.1:8000"
	r.Tools = []doctor.Tool{{Tool: "python", What: "in bwrap"},
		{Tool: "browser", Missing: "it has no search engine: set EXA_API_KEY"}}
	plan := doctor.PlanReport{Plan: serve.Plan{Context: 131072}}
	r.Models = []doctor.Model{{Name: "demo", State: "built in", Fits: true, Plan: plan},
		{Name: "20b", State: "not downloaded", Fits: true, Plan: plan, Expected: 9.6, ReadBound: 13.2,
			Needs: 13.1e9},
		{Name: "120b", State: "not downloaded", Needs: 64.4e9, Plan: doctor.PlanReport{Error: "no"}},
		{Name: "safeguard-20b", State: "not downloaded", Fits: true, Plan: plan}}
	return r
}

// TestDoctorSummary: without flags it is a screen of 80x24 with a mark a part and a line a model.
func TestDoctorSummary(t *testing.T) {
	code, stdout, stderr := runDoctor(t)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"ossrun ", "\n✓ CPU     ", "\n✓ Memory  ", " GPU ", " Disk ",
		" Tool ", " Port ", "\nMODEL  FITS ", "\n20b ", "\n120b ", "\ndemo   yes ", "built in",
		"\nNext:     ossrun ", "\nDetails:  ossrun doctor --verbose\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("missing %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "safeguard") || strings.Contains(stdout, "vLLM") {
		t.Errorf("more than was asked for:\n%s", stdout)
	}
	if n := strings.Count(foldLines(stdout, 80), "\n"); n > 24 {
		t.Errorf("%d rows:\n%s", n, stdout)
	}
	r := recordedMachine()
	var out strings.Builder
	if err := printSummary(&out, r); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\n")
	want := `✓ CPU     EPYC, 2 cores, avx2
✓ Memory  0 MB, 0 MB free
– GPU     none found; the CPU is used
✓ Disk    20.0 GB free in /hub
✓ Tool    python: in bwrap
– Tool    browser off: set EXA_API_KEY
✓ Port    127.0.0.1:8000 is free

MODEL  FITS  CONTEXT  SPEED              INSTALLED
demo   yes   131,072  -                  built in
20b    yes   131,072  10 to 13 tokens/s  not downloaded, 13.8 GB
120b   no    -        -                  not downloaded
120b needs 68.7 GB free (64.4 GB for the model, 4.3 GB kept for the system); close programs that use 68.7 GB.

Next:     ossrun pull 20b
Details:  ossrun doctor --verbose
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestDoctorJSON(t *testing.T) {
	expectedRates = measuredRates
	defer func() { expectedRates = quickRates }()
	r := doctorJSON(t, 0)
	if r.Machine.Cores < 1 || r.Machine.MemoryTotal < 1<<28 ||
		r.Machine.MemoryFree > r.Machine.MemoryTotal || len(r.Machine.ISAs) == 0 {
		t.Errorf("machine %+v", r.Machine)
	}
	if len(r.Models) < 3 || r.Golden != nil || r.Selftest != nil || r.Passed != nil {
		t.Errorf("report %+v", r)
	}
	for _, m := range r.Models {
		if m.Fits != (m.Plan.Error == "" && m.Plan.OnDisk == 0 &&
			m.Plan.Context >= doctor.UsableContext) || m.Fits && m.Needs > r.Machine.MemoryFree {
			t.Errorf("%s needs %d of %d and fits: %v, planned: %+v", m.Name, m.Needs,
				r.Machine.MemoryFree, m.Fits, m.Plan)
		}
		// 12.62 and 63.79 GB of weights, 0.20 and 0.30 GB of bf16 cache for 8192 tokens, 0.21 of
		// logits; windows and scratch come on top
		if least := map[string]int64{"20b": 13.03e9, "120b": 64.30e9}[m.Name]; m.Needs < least ||
			least > 0 && m.Needs > least+0.3e9 {
			t.Errorf("%s needs %d bytes", m.Name, m.Needs)
		}
	}
}

func TestDoctorGolden(t *testing.T) {
	dir := goldenCases(t, 0, 3)
	code, stdout, stderr := runDoctor(t, "--golden", dir)
	if code != 0 || stderr != "" || !strings.HasSuffix(stdout, "golden: passed\n") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	r := doctorJSON(t, 0, "--golden", dir)
	// three cases and their sum, in four modes
	if len(r.Golden) != 4*4 || r.Passed == nil || !*r.Passed {
		t.Errorf("%d rows, passed %v", len(r.Golden), r.Passed)
	}
	for _, row := range r.Golden {
		if !row.OK || row.MaxAbs == nil || *row.MaxAbs == 0 {
			t.Errorf("%+v", row)
		}
	}
}

// TestDoctorDamagedGolden: one logit, changed by a hundredth or no number at all, ends with exit
// code 1 and a miss in every mode.
func TestDoctorDamagedGolden(t *testing.T) {
	for _, change := range []float32{0.01, float32(math.NaN())} {
		dir := damagedGolden(t, change)
		r := doctorJSON(t, exitFailure, "--golden", dir)
		missed := map[string]bool{}
		for _, row := range r.Golden {
			if !row.OK {
				missed[row.Mode+" "+row.Case] = true
			}
		}
		const q8, fast = "int8, dense q8 (qkv 12 bits) ", "int8-fast, dense q8 "
		for _, want := range []string{"exact len31", "exact all", "int8 len31", "int8 all",
			q8 + "len31", q8 + "all", fast + "len31", fast + "all"} {
			if !missed[want] {
				t.Errorf("changed by %v: %s passes", change, want)
			}
		}
		if len(missed) != 8 {
			t.Errorf("changed by %v: misses %v", change, missed)
		}
	}
	code, stdout, stderr := runDoctor(t, "--golden", damagedGolden(t, 0.01))
	if code != exitFailure || !strings.Contains(stdout, "MISS: ") ||
		!strings.HasSuffix(stdout, "golden: FAILED\n") ||
		!strings.Contains(stderr, "a check failed") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
}

func TestDoctorRefuses(t *testing.T) {
	for _, test := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"--golden", t.TempDir()}, exitUsage, "cases.json"},
		{[]string{"--golden"}, exitUsage, ""},
		{[]string{"20b"}, exitUsage, "takes no arguments"},
		{[]string{"--gold", "x"}, exitUsage, "--golden"},
	} {
		code, stdout, stderr := runDoctor(t, test.args...)
		if code != test.code || !strings.Contains(stderr, test.stderr) ||
			strings.Contains(stdout, "passed") {
			t.Errorf("%v: exit code %d, stderr %q", test.args, code, stderr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, _ := runHere(ctx, "doctor", "--golden", goldenT2); code != exitInterrupted {
		t.Errorf("interrupted: exit code %d", code)
	}
}

// faulty is a device whose steps spoil one logit.
type faulty struct{ engine.Device }

// Caps leaves out 8-bit computation.
func (d faulty) Caps() engine.Caps {
	c := d.Device.Caps()
	c.DenseQ8, c.FP8KV = false, false
	return c
}

type faultyStep struct{ engine.Step }

func (d faulty) Compile(p *engine.Program) (engine.Step, error) {
	s, err := d.Device.Compile(p)
	return faultyStep{s}, err
}

func (s faultyStep) Forward(b *engine.Batch, logits []float32, times []int64) error {
	err := s.Step.Forward(b, logits, times)
	if len(logits) > 0 {
		logits[len(logits)/2] += 1
	}
	return err
}

// TestSelftestSeesAFault: of all operations only the one that is spoilt fails, and the report says
// so. The device around it says that it has no dense weights or KV pages in 8 bits: those
// operations are skipped by name.
func TestSelftestSeesAFault(t *testing.T) {
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, test := range []struct {
		dev    engine.Device
		failed string
		skips  int
	}{{dev, "", 0}, {faulty{dev}, "unembed", 8 * len(cpu.ISAs())}} {
		var r doctor.Report
		var out bytes.Buffer
		extent := doctor.Extent{Shapes: enginetest.Small()[:1]}
		if err := r.SelftestCPU(t.Context(), test.dev, extent,
			(&selftestScreen{out: &out}).show); err != nil {
			t.Fatal(err)
		}
		skipped := 0
		for _, row := range r.Selftest {
			if row.Skipped != "" {
				skipped++
			}
			if row.OK != (row.Op != test.failed) {
				t.Errorf("with %q spoilt, %s is OK: %v (%s)", test.failed, row.Op, row.OK, row.Why)
			}
		}
		if told := strings.Count(out.String(), " in 8 bits\n"); skipped != test.skips ||
			told != skipped {
			t.Errorf("%d skipped and %d told, %d expected\n%s", skipped, told, test.skips,
				out.String())
		}
		if want := test.failed == ""; *r.Passed != want ||
			strings.HasSuffix(out.String(), "selftest: passed\n") != want {
			t.Errorf("with %q spoilt, passed: %v\n%s", test.failed, *r.Passed, out.String())
		}
	}
}

// TestSelftestRowsComeOneByOne: an operation is shown before the next one runs, which may hang.
func TestSelftestRowsComeOneByOne(t *testing.T) {
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var r doctor.Report
	shapes := enginetest.Small()[:1]
	err = r.SelftestCPU(ctx, dev, doctor.Extent{Shapes: shapes, Timed: shapes}, func(what any) {
		if _, is := what.(doctor.SelftestRow); is {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || len(r.Selftest) != 1 || r.Selftest[0].GBs <= 0 {
		t.Errorf("%v, %+v", err, r.Selftest)
	}
}

func TestDoctorSelftest(t *testing.T) {
	if os.Getenv("OSSRUN_LONG") == "" {
		t.Skip("slow: set OSSRUN_LONG=1")
	}
	code, stdout, stderr := runDoctor(t, "--selftest", "--json")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var r doctor.Report
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || code != 0 {
		t.Fatalf("exit code %d, %s, %v", code, stderr, err)
	}
	if len(r.Selftest) < 10*len(r.Machine.ISAs) || !*r.Passed {
		t.Errorf("%d rows, passed %v", len(r.Selftest), *r.Passed)
	}
	for _, row := range r.Selftest {
		if row.GBs <= 0 {
			t.Errorf("%s on %s was not measured", row.Op, row.ISA)
		}
	}
}

// goldenCases is T2 with some of its cases, in the order of their lengths, which are 1, 2, 31 and
// more. The step of CI for goldens runs all.
func goldenCases(t *testing.T, from, to int) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(goldenT2))
	path := filepath.Join(dir, "golden", "cases.json")
	data, wrong := os.ReadFile(path)
	var file map[string]any
	if err = errors.Join(err, wrong, json.Unmarshal(data, &file)); err != nil {
		t.Fatal(err)
	}
	file["cases"] = file["cases"].([]any)[from:to]
	data, err = json.Marshal(file)
	if err = errors.Join(err, os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// damagedGolden has a short case, and one with one of its logits changed.
func damagedGolden(t *testing.T, change float32) string {
	t.Helper()
	dir := goldenCases(t, 1, 3)
	path := filepath.Join(dir, "golden", "logits.safetensors")
	header, err := safetensors.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range header.Tensors {
		if info.Name == "len31.logits" {
			at := data[info.Begin+4*(17*777+402):]
			v := math.Float32frombits(binary.LittleEndian.Uint32(at))
			binary.LittleEndian.PutUint32(at, math.Float32bits(v+change))
		}
	}
	write(t, path, string(data))
	return dir
}

// TestOneFigureOfMemory: the pages give the same memory of a model as doctor and the first run. The
// expected speed is never above doctor's bound.
func TestOneFigureOfMemory(t *testing.T) {
	pages := []string{"README.md", "docs/guide/models.md", "docs/guide/hardware.md"}
	for _, m := range doctorJSON(t, 0).Models {
		if m.Expected > m.ReadBound {
			t.Errorf("%s: %v tokens a second of at most %v", m.Name, m.Expected, m.ReadBound)
		}
		if m.Name != "20b" && m.Name != "120b" {
			continue
		}
		figure := gigabytes(m.Needs)
		for _, page := range pages {
			text, err := os.ReadFile(filepath.Join("../..", page))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), figure) {
				t.Errorf("%s does not say that %s needs %s", page, m.Name, figure)
			}
		}
		f := firstRun{preview: serve.Preview{Needs: m.Needs, Plan: serve.Plan{Total: 2 * m.Needs,
			OnDisk: 3e9}}}
		for _, none := range []error{nil, errors.New("no memory")} {
			f.preview.PlanErr = none
			if text := f.promise(80); !strings.Contains(text, "needs "+figure) &&
				!strings.Contains(text, figure+" for the model") {
				t.Errorf("%s: the first run says %q, doctor %s", m.Name, text, figure)
			}
		}
	}
}
