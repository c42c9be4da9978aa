// Saved runs, ours and vLLM's, in one table.

package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// Saved is a run that was read back: its figures by vLLM's names.
type Saved struct {
	Name    string             `json:"name"`             // the file, and the run's number in it
	Source  string             `json:"source,omitempty"` // of one that was published
	Figures map[string]float64 `json:"figures"`
}

// Read reads the runs of a file: one JSON object, or one a line.
func Read(file string) ([]Saved, error) {
	text, err := mapping.ReadText(file, mapping.MaxData)
	if err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var list []Saved
	for d.More() {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, fmt.Errorf("%s does not hold results in JSON: %w", file, err)
		}
		s, err := NewSaved(filepath.Base(file), one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s holds no result", file)
	}
	if len(list) > 1 {
		for i := range list {
			list[i].Name = fmt.Sprintf("%s #%d", list[i].Name, i+1)
		}
	}
	return list, nil
}

// NewSaved reads the JSON object of one run.
func NewSaved(name string, text []byte) (Saved, error) {
	s := Saved{Name: name, Figures: map[string]float64{}}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return s, fmt.Errorf("read a result: %w", err)
	}
	for name, value := range members {
		if v, ok := value.(float64); ok {
			s.Figures[name] = v
		}
	}
	if _, ok := s.Figures["output_throughput"]; !ok {
		return s, errors.New("there is no output_throughput: it is not a result of bench serve")
	}
	return s, nil
}

// compared are the figures of the table, with their labels.
var compared = []struct{ name, label string }{
	{"completed", "Successful requests"}, {"failed", "Failed requests"},
	{"duration", "Benchmark duration (s)"},
	{"request_throughput", "Requests/s"}, {"request_goodput", "Good requests/s"},
	{"output_throughput", "Output tok/s"}, {"total_token_throughput", "Total tok/s"},
	{"mean_ttft_ms", "Mean TTFT (ms)"}, {"median_ttft_ms", "Median TTFT (ms)"},
	{"p99_ttft_ms", "P99 TTFT (ms)"},
	{"mean_tpot_ms", "Mean TPOT (ms)"}, {"median_tpot_ms", "Median TPOT (ms)"},
	{"p99_tpot_ms", "P99 TPOT (ms)"},
	{"mean_itl_ms", "Mean ITL (ms)"}, {"median_itl_ms", "Median ITL (ms)"},
	{"p99_itl_ms", "P99 ITL (ms)"},
	{"mean_e2el_ms", "Mean E2EL (ms)"}, {"median_e2el_ms", "Median E2EL (ms)"},
	{"p99_e2el_ms", "P99 E2EL (ms)"},
}

// Compare prints a column for each run; each figure is followed by its ratio to the first run's.
func Compare(w io.Writer, runs []Saved) error {
	var b strings.Builder
	line := func(name string, cell func(i int) string) {
		fmt.Fprintf(&b, "%-24s", name)
		for i := range runs {
			width := max(len(runs[i].Name), 21)
			fmt.Fprintf(&b, "  %*s", width, cell(i))
		}
		b.WriteByte('\n')
	}
	line("", func(i int) string { return runs[i].Name })
	for _, row := range compared {
		if !slices.ContainsFunc(runs, func(r Saved) bool { return r.Figures[row.name] != 0 }) {
			continue
		}
		first := runs[0].Figures[row.name]
		line(row.label, func(i int) string {
			v, ok := runs[i].Figures[row.name]
			switch {
			case !ok:
				return "-"
			case i == 0 || first == 0:
				return fmt.Sprintf("%.2f", v)
			}
			return fmt.Sprintf("%.2f %8s", v, fmt.Sprintf("%.3fx", v/first))
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}
