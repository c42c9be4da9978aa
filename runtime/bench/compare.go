package bench

// Reports that were saved, side by side.

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Read reads a saved report.
func Read(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s does not hold a result of bench: %w", file, err)
	}
	if len(r.Prefill)+len(r.Decode) == 0 {
		return nil, fmt.Errorf("%s does not hold a result of bench", file)
	}
	return &r, nil
}

// Compare prints reports by the names of their files; behind each rate stands its ratio to the
// first report's.
func Compare(w io.Writer, files []string, reports []*Report) error {
	var b strings.Builder
	const narrow, wide = 22, 30
	line := func(name string, cell func(r *Report) string) {
		fmt.Fprintf(&b, "%-*s", narrow, name)
		for _, r := range reports {
			fmt.Fprintf(&b, "  %*s", wide, short(cell(r), wide))
		}
		b.WriteByte('\n')
	}
	at := 0
	line("", func(*Report) string { at++; return filepath.Base(files[at-1]) })
	line("processor", func(r *Report) string {
		return fmt.Sprintf("%s, %d cores", r.About.CPU, r.About.Cores)
	})
	line("version, kernels", func(r *Report) string {
		return r.About.Version + ", " + r.About.Kernels
	})
	line("date", func(r *Report) string { return r.About.Date })
	line("model", func(r *Report) string { return r.Model })
	line("compute, dense, kv", func(r *Report) string {
		return r.Compute + ", " + r.Dense + ", " + r.KV
	})
	line("plain reads (GB/s)", func(r *Report) string { return fmt.Sprintf("%.1f", r.ReadGBs) })
	line("plain products (TOPS)", func(r *Report) string {
		return fmt.Sprintf("%.3f", r.PeakTOPS)
	})
	line("load average before", func(r *Report) string {
		return fmt.Sprintf("%.1f", r.LoadAverage)
	})
	line("load (s)", func(r *Report) string { return fmt.Sprintf("%.2f", r.LoadS) })
	for _, test := range tests(reports) {
		line(test+" (tok/s)", func(r *Report) string {
			mine, first := r.rate(test), reports[0].rate(test)
			switch {
			case mine == nil:
				return "-"
			case first == nil || r == reports[0]:
				return fmt.Sprintf("%.2f", mine.TokensPerS)
			}
			return fmt.Sprintf("%.2f %8s", mine.TokensPerS,
				fmt.Sprintf("%.3fx", mine.TokensPerS/first.TokensPerS))
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func short(s string, width int) string {
	if letters := []rune(s); len(letters) > width {
		return string(letters[:width-3]) + "..."
	}
	return s
}

// tests are the measurements of all reports, in the order in which they come first.
func tests(reports []*Report) (names []string) {
	seen := map[string]bool{}
	for _, r := range reports {
		for _, rate := range append(r.Prefill[:len(r.Prefill):len(r.Prefill)], r.Decode...) {
			if !seen[rate.Test] {
				seen[rate.Test] = true
				names = append(names, rate.Test)
			}
		}
	}
	return names
}

// rate is the measurement of that name; nil where there is none.
func (r *Report) rate(test string) *Rate {
	for _, list := range [][]Rate{r.Prefill, r.Decode} {
		for i := range list {
			if list[i].Test == test {
				return &list[i]
			}
		}
	}
	return nil
}
