// Values of bench serve's flags.

package cli

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/endpoint"
)

func (v *benchServeVerb) readRangeRatio(s string) bool {
	r, err := strconv.ParseFloat(s, 64)
	v.random.RangeRatio = r
	return err == nil && r >= 0
}

// readRange reads FROM,TO,STEP; TO is left out.
func readRange(s string) (list []float64, err error) {
	wrong := fail(exitUsage, "--request-rate-range must be FROM,TO,STEP such as 2,34,2, not %q", s)
	parts := strings.Split(s, ",")
	var n [3]float64
	if len(parts) != len(n) {
		return nil, wrong
	}
	for i, p := range parts {
		if n[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64); err != nil || !(n[i] > 0) {
			return nil, wrong
		}
	}
	for rate := n[0]; rate < n[1] && len(list) < 1000; rate += n[2] {
		list = append(list, rate)
	}
	if len(list) == 0 {
		return nil, wrong
	}
	return list, nil
}

func (v *benchServeVerb) readGoals(list []string) error {
	for _, goal := range strings.Fields(strings.Join(list, " ")) {
		name, value, _ := strings.Cut(goal, ":")
		ms, err := strconv.ParseFloat(value, 64)
		if err != nil || !(ms > 0) || ms > 1e9 {
			return fail(exitUsage, "--goodput must be METRIC:MILLISECONDS such as ttft:500, not %q",
				goal)
		}
		limit := time.Duration(ms * float64(time.Millisecond))
		switch strings.ToLower(name) {
		case "ttft":
			v.goals.TTFT = limit
		case "tpot":
			v.goals.TPOT = limit
		case "e2el":
			v.goals.E2EL = limit
		default:
			return fail(exitUsage, "--goodput knows ttft, tpot and e2el, not %q", name)
		}
	}
	return nil
}

func (v *benchServeVerb) readPercentiles(s string) bool {
	v.load.Percentiles = nil
	for part := range strings.SplitSeq(s, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return false
		}
		v.load.Percentiles = append(v.load.Percentiles, p)
	}
	return true
}

func (v *benchServeVerb) readMetadata(list []string) error {
	for _, m := range list {
		name, value, ok := strings.Cut(m, "=")
		if !ok || name == "" {
			return fail(exitUsage, "--metadata must be KEY=VALUE, not %q", m)
		}
		v.load.Metadata[name] = value
	}
	return nil
}

// readRest takes further arguments of --goodput and --metadata, which vLLM reads as lists.
func (v *benchServeVerb) readRest(c *cli.Context) error {
	for _, a := range c.Args().Slice() {
		var err error
		switch {
		case c.IsSet("goodput") && strings.Contains(a, ":"):
			err = v.readGoals([]string{a})
		case c.IsSet("metadata") && strings.Contains(a, "="):
			err = v.readMetadata([]string{a})
		default:
			return noArguments(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openPort opens the server at base. Its first model is meant where none is named.
func openPort(ctx context.Context, base string, model *string) (*endpoint.Client, error) {
	client, err := endpoint.New(base, portKey())
	if err != nil {
		return nil, fail(exitUsage, "%s", err)
	}
	if *model == "" {
		if *model, err = client.FirstModel(ctx); err != nil {
			client.Close()
			return nil, err
		}
	}
	return client, nil
}

// portKey is the key that another server is sent.
func portKey() string {
	return cmp.Or(os.Getenv("OSSRUN_API_KEY"), os.Getenv("VLLM_API_KEY"),
		os.Getenv("OPENAI_API_KEY"))
}
