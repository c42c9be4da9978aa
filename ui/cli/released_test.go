//go:build linux

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

// A static executable as it is released, with the GPU worker inside, on the fake driver:
// assets/release/smoke-worker runs these tests and names the executable. It is static, so whatever
// of a GPU works here works through the worker.

var released = flag.String("released", "",
	"the static `executable` with a GPU worker that TestReleased... tries")

// theReleased is that executable.
func theReleased(t *testing.T) string {
	t.Helper()
	if *released == "" {
		t.Skip("no -released: assets/release/smoke-worker EXECUTABLE")
	}
	path, err := filepath.Abs(*released)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// onFakeGPU is a command in an environment of its own with the fake driver.
func onFakeGPU(t *testing.T, home string, args ...string) (c *exec.Cmd, stdout,
	stderr *bytes.Buffer) {
	t.Helper()
	library, err := drivertest.Build(driver.CUDA)
	if err != nil {
		t.Fatal(err)
	}
	c = exec.Command(args[0], args[1:]...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" +
		filepath.Join(home, "run"), "OSSRUN_LIBCUDA=" + library,
		"OSSRUN_UNPROVED=1"}
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	c.Stdout, c.Stderr = stdout, stderr
	return c, stdout, stderr
}

// TestReleasedKernels: the executable has no second copy of the kernels, which are its worker's,
// and names them all the same.
func TestReleasedKernels(t *testing.T) {
	program := theReleased(t)
	said, err := exec.Command(program, "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var b buildInfo
	if err := json.Unmarshal(said, &b); err != nil || b.Kernels.GPU != assets.KernelHash() ||
		!b.Static || !b.Worker {
		t.Errorf("version says %s, %v; the kernels here are %s", said, err, assets.KernelHash())
	}
	image, err := assets.Kernels.ReadFile("kernels/sm_80.ptx.gz")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(whole, image[:1000]) {
		t.Error("the kernels lie in the static executable beside its worker")
	}
}

// TestReleasedSteps: a golden case on the GPU is right, and each of its steps is one message there
// and one back.
func TestReleasedSteps(t *testing.T) {
	theReleased(t)
	goldenThroughWorker(t, goldenCases(t, 1, 2)) // all of them take minutes by emulation
}

// TestReleasedGGUF: so is it with the weights of a GGUF file, which are put in order in this
// process's memory and lie in no file.
func TestReleasedGGUF(t *testing.T) {
	theReleased(t) // before anything is written
	golden := goldenCases(t, 1, 2)
	path := filepath.Join(golden, "checkpoint")
	checkpoint, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weights")
	err = errors.Join(ggufAt(checkpoint, file, modeltest.LlamaBF16), checkpoint.Close(),
		os.RemoveAll(path))
	if err == nil {
		err = os.Rename(file, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	goldenThroughWorker(t, golden)
}

// goldenThroughWorker holds the executable to a golden folder on the fake driver's GPU.
func goldenThroughWorker(t *testing.T, golden string) {
	t.Helper()
	program := theReleased(t)
	c, stdout, stderr := onFakeGPU(t, t.TempDir(), program, "doctor", "--device", "gpu", "--golden",
		golden, "--json")
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	var r doctor.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Device.Name, "Fake H100") || !strings.HasSuffix(r.Device.Name,
		"in a process of its own") || r.Passed == nil || !*r.Passed {
		t.Errorf("%+v, passed %v", r.Device, r.Passed)
	}
	if w := r.Worker; w == nil || w.Steps < 49 || w.Sent != w.Steps || w.Received != w.Steps {
		t.Errorf("not one message there and one back for each of 49 steps or more: %+v", w)
	} else {
		t.Logf("%s: %d steps, %d messages there, %d back", r.Device.Name, w.Steps, w.Sent,
			w.Received)
	}
}

// TestReleasedKilledWorker: kill -9 of the worker, which runs from memory, ends the running request
// and no other.
func TestReleasedKilledWorker(t *testing.T) {
	killTheWorker(t, startServer(t, theReleased(t)))
}

// TestReleasedPlan: a model over GPU and CPU, all in the worker; killed, it comes back with the
// same plan.
func TestReleasedPlan(t *testing.T) {
	s := startServer(t, theReleased(t), "--cpu-experts", "1")
	killTheWorker(t, s)
	if n := strings.Count(s.said(), "experts of 1 of them on the CPU"); n != 2 {
		t.Errorf("%d plans are told, not 2:\n%s", n, s.said())
	}
}

// TestReleasedFromFile: if the system runs nothing from memory, the worker is written to a file of
// the user's and started from there. If it runs no such file either, the CPU computes and one
// sentence says why.
func TestReleasedFromFile(t *testing.T) {
	program := theReleased(t)
	home := t.TempDir()
	// vm.memfd_noexec is a setting of each process namespace, so the machine's own stays as it is.
	inside := func(before string, args ...string) []string {
		list := []string{"unshare", "--pid", "--fork", "--mount", "--mount-proc"}
		if os.Getuid() != 0 {
			list = append(list, "--map-root-user")
		}
		return append(append(list, "sh", "-c", before+` && exec "$@"`, "sh"), args...)
	}
	const refuse = "echo 2 > /proc/sys/vm/memfd_noexec"
	args := inside(refuse, "true")
	if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Skipf("this machine's kernel has no vm.memfd_noexec, or lets nobody set it: %v %s", err,
			said)
	}
	c, stdout, stderr := onFakeGPU(t, home, inside(refuse, program, "doctor", "--verbose")...)
	if err := c.Run(); err != nil || !strings.Contains(stdout.String(),
		"Fake H100, sm_90, in a process of its own: a GPU that works") {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	files, err := filepath.Glob(filepath.Join(home, "run", "ossrun", "gpu-worker-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	c, stdout, stderr = onFakeGPU(t, home,
		inside(refuse+` && mount -t tmpfs -o noexec none "$HOME"`, program, "chat", "--model",
			"demo", "--temperature", "0", "How do I serve an OpenAI API?")...)
	if err := c.Run(); err != nil || !strings.Contains(stdout.String(), "ossrun serve") ||
		!strings.HasPrefix(stderr.String(),
			"ossrun: the CPU computes: the GPU worker can be started neither from memory nor "+
				"from a file: ") {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
}

// TestReleasedWithoutLoader: a root folder without a C library, and one with only the program,
// where a driver is claimed to be.
func TestReleasedWithoutLoader(t *testing.T) {
	program := theReleased(t)
	root := t.TempDir()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "ossrun"), string(data))
	args := []string{"chroot", root, "/ossrun", "chat", "--model", "demo", "--temperature", "0",
		"How do I serve an OpenAI API?"}
	if os.Getuid() != 0 {
		args = append([]string{"unshare", "--user", "--map-root-user"}, args...)
	}
	c := exec.Command(args[0], args[1:]...)
	// there is none, but somebody says so
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "OSSRUN_LIBCUDA=/libcuda.so.1"}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil || !strings.Contains(stdout.String(), "ossrun serve") ||
		!strings.HasPrefix(stderr.String(),
			"ossrun: the CPU computes: GPUs need the C library glibc on this machine, and its "+
				"loader ") {
		t.Errorf("%v: %s%s", err, &stdout, &stderr)
	}
}
