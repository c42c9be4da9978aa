// Output of ossrun bench and bench ops.

package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/measure/bench"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

func printBench(out io.Writer, r *bench.Report) error {
	w := columns(out)
	printHead(w, r)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\ntest\ttok/s\tleast\tmost\tMB/token\tGB/s\tof reads\tof multiplications\t"+
		"experts\tpredicted\tmeasured/predicted\n")
	for _, p := range r.Prefill {
		multiply := ""
		if r.PeakUnit != "" {
			multiply = fmt.Sprintf("%.0f %%", 100*p.OfMultiply)
		}
		printRate(w, p, multiply)
	}
	for _, d := range r.Decode {
		printRate(w, d, "")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		list []bench.Operation
	}{
		{"a step of the prompt", r.PrefillProfile},
		{"a decode step", r.DecodeProfile},
		{"a step of a batch", r.BatchProfile},
	} {
		if p.list != nil {
			fmt.Fprintln(w)
			if err := printOperations(w, p.name, p.list); err != nil {
				return err
			}
		}
	}
	return nil
}

func printHead(w io.Writer, r *bench.Report) {
	fmt.Fprintf(w, "machine\t%s, %d cores, %s; load average %.1f; ossrun %s\n", r.About.CPU,
		r.About.Cores, r.About.OS, r.LoadAverage, r.About.Version)
	fmt.Fprintf(w, "model\t%s, %d layers, %s of weights\n", r.Model, r.Layers, gigabytes(r.Weights))
	closeness := ""
	if kl := doctor.Closeness(r.Compute, r.Dense); kl > 0 && r.PeakUnit != "" {
		closeness = fmt.Sprintf("; KL %.1e to exact", kl)
	}
	fmt.Fprintf(w, "device\t%s; compute %s, dense %s, kv %s%s\n", r.Device, r.Compute, r.Dense,
		r.KV, closeness)
	if r.PeakUnit == "" {
		fmt.Fprintf(w, "limits\t%.1f GB/s in copies inside the GPU's memory\n", r.ReadGBs)
	} else {
		fmt.Fprintf(w, "limits\t%.1f GB/s of plain reads, %.3f TOPS of %s\n", r.ReadGBs,
			r.PeakTOPS, r.PeakUnit)
	}
	if r.DenseBytes > 0 {
		fmt.Fprintf(w, "8-bit copy\t%s, in place of the dense weights\n", gigabytes(r.DenseBytes))
	}
	fmt.Fprintf(w, "load\t%.2f s, first token after %.2f s\n", r.LoadS, r.StartS)
}

func printRate(w io.Writer, r bench.Rate, multiply string) {
	fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.0f %%\t%s\t%.1f\t%.2f\t%.2f\n", r.Test,
		r.TokensPerS, r.Least, r.Most, float64(r.BytesPerToken)/1e6, r.GBPerS, 100*r.OfRead,
		multiply, r.Experts, r.PredictedPerS, r.OfPredicted)
}

func printOperations(w *tabwriter.Writer, title string, list []bench.Operation) error {
	fmt.Fprintf(w, "%s\tms\tleast\tmost\t%%\tMB\tGB/s\tof reads\tTOPS\tof multiplications\n", title)
	for _, o := range list {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.0f %%\t%.3f\t%.0f %%\n", o.Name,
			o.Milliseconds, o.Least, o.Most, o.Percent, float64(o.Bytes)/1e6, o.GBPerS,
			100*o.OfRead, o.TOPS, 100*o.OfMultiply)
	}
	return w.Flush()
}

func (v *benchVerb) copy(c *cli.Context, x benchTarget) error {
	about := x.about
	r, err := bench.Copy(c.Context, x.backend, x.ckpt, v.bench)
	if err != nil {
		return err
	}
	r.About = about
	if c.Bool("json") {
		return writeJSON(c.App.Writer, r)
	}
	w := columns(c.App.Writer)
	fmt.Fprintf(w, "machine\t%s, %d cores, %s; ossrun %s\n", about.CPU, about.Cores, about.OS,
		about.Version)
	fmt.Fprintf(w, "model\t%s, %d layers\n", r.Model, r.Layers)
	fmt.Fprintf(w, "device\t%s; compute %s, dense %s\n\n", r.Device, r.Compute, r.Dense)
	fmt.Fprintf(w, "text\ttok/s\twithout drafts\ttimes\tleast\tmost\tby processor time\ttried\t"+
		"right\n")
	for _, t := range r.Texts {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t%d\n", t.Text, t.With,
			t.Without, t.Times, t.Least, t.Most, t.TimesCPU, t.Drafted, t.Accepted)
	}
	return w.Flush()
}

func aboutBench(b engine.Backend) (bench.About, error) {
	program, err := fullBuild()
	m := doctor.DescribeMachine(b)
	total, _, unknown := serve.HostMemory() // b may be a GPU
	return bench.About{Date: time.Now().UTC().Format(time.RFC3339), Version: program.Version,
			Commit: program.Commit, Kernels: program.Kernels.CPU,
			Command: "ossrun " + strings.Join(os.Args[1:], " "), OS: m.OS,
			CPU: m.CPU, Cores: m.Cores, Memory: total},
		errors.Join(err, unknown)
}

// notInNames matches characters that are left out of file names.
var notInNames = regexp.MustCompile(`[^a-z0-9.]+`)

func (v *benchVerb) write(r *bench.Report, t Terminal) error {
	if !v.save && v.resultFile == "" {
		return nil
	}
	name := cmp.Or(v.resultFile, strings.Trim(notInNames.ReplaceAllString(strings.ToLower(
		fmt.Sprintf("%s %d cores %s %s %s", r.About.CPU, r.About.Cores, r.Model, r.Compute,
			r.Dense)), "-"), "-")+".json")
	var text bytes.Buffer
	err := writeJSON(&text, r.Flat())
	if err == nil {
		name, err = writeResult(v.resultDir, name, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("save the result: %w", err)
	}
	fmt.Fprintln(t.Err, "the result is in", name)
	return nil
}

// writeResult writes a file into a folder, creating it if necessary; "": the current one.
func writeResult(folder, name string, text []byte) (string, error) {
	if folder != "" {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		name = filepath.Join(folder, name)
	}
	return name, os.WriteFile(name, text, 0o644)
}

func (v *benchVerb) comparison(c *cli.Context) error {
	files, reports, err := toCompare(c, v.compare, bench.Read)
	if err != nil {
		return err
	}
	return bench.Compare(c.App.Writer, files, reports)
}
