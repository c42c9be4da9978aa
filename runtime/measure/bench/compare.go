package bench

// Reports as files: one object, and a table of several.

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// Flat is the report as one object, with the figures that scripts compare under names of their own.
func (r *Report) Flat() map[string]any {
	flat, fields := map[string]any{}, reflect.ValueOf(*r)
	for i := range fields.NumField() {
		flat[fields.Type().Field(i).Tag.Get("json")] = fields.Field(i).Interface()
	}
	for i, p := range r.Prefill {
		flat[fmt.Sprintf("prefill_%d_tok_s", p.Tokens)] = p.TokensPerS
		if i == 0 {
			flat["prefill_fraction_of_vnni"] = p.OfMultiply
		}
	}
	for _, d := range r.Decode {
		switch {
		case d.Context > 0:
			flat[fmt.Sprintf("decode_at_%d_tok_s", d.Context)] = d.TokensPerS
		case d.Tokens == 1:
			flat["decode_tok_s"], flat["bytes_per_token"] = d.TokensPerS, d.BytesPerStep
			flat["decode_fraction_of_read"] = d.OfRead
		default:
			flat[fmt.Sprintf("batch%d_tok_s", d.Tokens)] = d.TokensPerS
			flat[fmt.Sprintf("batch%d_fraction_of_read", d.Tokens)] = d.OfRead
		}
	}
	return flat
}

func Read(file string) (*Report, error) {
	text, err := mapping.ReadText(file, mapping.MaxData)
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

// Compare prints a column for each report, with each rate's ratio to the first report's.
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
	index := 0
	line("", func(*Report) string { index++; return filepath.Base(files[index-1]) })
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

// tests are the measurements of all reports, in the order of their first appearance.
func tests(reports []*Report) (names []string) {
	for _, r := range reports {
		for _, rate := range slices.Concat(r.Prefill, r.Decode) {
			if !slices.Contains(names, rate.Test) {
				names = append(names, rate.Test)
			}
		}
	}
	return names
}

func (r *Report) rate(test string) *Rate {
	for _, rate := range slices.Concat(r.Prefill, r.Decode) {
		if rate.Test == test {
			return &rate
		}
	}
	return nil
}
