// Facts about the machine and this build that need no loaded model, and a preview of a catalogue
// model before its download.

package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Cores is how many cores this process may use.
func Cores() int { return cpu.Cores() }

// ISAs are the instruction sets with CPU kernels on this machine, the best one last.
func ISAs() []string { return cpu.ISAs() }

// HostMemory is the host's memory, whatever device computes, in bytes.
func HostMemory() (total, free int64, err error) {
	dev, err := cpu.New(1)
	if err != nil {
		return 0, 0, err
	}
	total, free = dev.Memory()
	return total, free, dev.Close()
}

// CPUKernelHash returns the first 12 digits of the SHA-256 over names and contents of the CPU
// engine's sources. Builds that compute the same way share it.
func CPUKernelHash() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(cpu.Sources, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(cpu.Sources, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", path, len(text))
		sum.Write(text)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// HostReadRate measures how fast the host's memory is read, in bytes a second: the best of a few
// readings, since other programs only slow one.
func HostReadRate(host engine.Backend) (best float64) {
	for range 3 {
		best = max(best, gpu.HostRate(HostDevice(host)))
	}
	return best
}

// IsBusy reports that other programs used the CPUs in the last minute, or other virtual machines
// since this process started, so that a measured speed is too low. It is false where the system
// does not tell.
func IsBusy() bool {
	text, _ := os.ReadFile("/proc/loadavg")
	var load float64
	_, _ = fmt.Sscan(string(text), &load)
	stolen, all := stolenTime()
	return load > 0.75*float64(runtime.NumCPU()) ||
		stolen-stolenBefore > 0.05*max(all-allBefore, 1)
}

var stolenBefore, allBefore = stolenTime()

// stolenTime is time that the machine below this virtual one took from it, and all of its time.
func stolenTime() (stolen, all float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(field, 64) // the first is a name
		if all += n; i == 8 {
			stolen = n
		}
	}
	return stolen, all
}

// Static reports an executable without a dynamic loader: GPU drivers are reached only by a worker.
const Static = gpu.Static

// WorkerVerb is the argument that makes this program the worker.
const WorkerVerb = gpu.WorkerVerb

// RunWorker serves the parent process until it ends or says goodbye.
func RunWorker() error { return gpu.RunWorker() }

// GPUNote is the notice of a static executable without a GPU worker, else "".
func GPUNote() string {
	if Static && len(assets.GPUWorker) == 0 {
		return "; " + gpu.NoWorker
	}
	return ""
}

// Preview describes a model on the open device. Nothing has been loaded.
type Preview struct {
	Device  string
	OnGPU   bool
	GPUs    detect.Result // of this machine, used or not
	Total   int64         // bytes of the device's memory
	Free    int64         // of Total
	Needs   int64         // of Total, with a context of gpu.UsableContext tokens
	Plan    Plan
	PlanErr error // if Plan is empty
	// upper bound on tokens a second of one answer, from the memory's speed; 0: unknown
	Rate float64
}

// Preview allocates nothing for a model; it measures the CPU's memory for a moment.
func (m *Models) Preview(ctx context.Context, e models.Entry) (p Preview, err error) {
	b := m.spare
	p.Device = b.Name()
	p.OnGPU, p.GPUs = onGPU(b), gpu.Detect(ctx)
	p.Total, p.Free = b.Memory()
	source := checkpoint.Model{Name: e.ID}
	s := modelSettings(b, source, e.Spec, SettingsFor(b, m.options))
	p.Plan, p.PlanErr = PlanOn(b, source, e.Spec, s)
	s.MaxModelLen = min(gpu.UsableContext, e.Spec.MaxPosition)
	if p.Needs, err = Needs(b, source, e.Spec, s); err != nil {
		return p, err
	}
	if p.Plan.OnDisk > 0 {
		return p, nil // the disk decides, and its speed was not measured
	}
	bandwidth := 0.0
	if !p.OnGPU {
		bandwidth = HostReadRate(b)
	} else if cards := p.GPUs.Usable(); len(cards) > 0 && cards[0].Figures != nil {
		bandwidth = cards[0].Figures.Bandwidth * 1e9
	}
	p.Rate, err = ReadBound(e.Spec, s, bandwidth)
	return p, err
}

// ReadBound is the upper bound on tokens a second of one answer, if memory is read at bandwidth
// bytes a second.
func ReadBound(spec models.Spec, s engine.Settings, bandwidth float64) (float64, error) {
	moved, err := tokenBytes(spec, s)
	if err != nil {
		return 0, err
	}
	return bandwidth / float64(moved), nil
}

// tokenBytes is how much a step of one token reads and writes at the beginning of a context.
func tokenBytes(spec models.Spec, s engine.Settings) (n int64, err error) {
	program, err := engine.Record(spec, s, 1)
	if err != nil {
		return 0, err
	}
	w := engine.Work{Rows: 1, LogitRows: 1, Experts: spec.ExpertsPerToken, Full: 1, Window: 1}
	for _, op := range program.Ops {
		n += program.Bytes(op, w)
	}
	return n, nil
}
