// The settings of the engine that serves, from four sources: the command line, the config file, a preset, and what suits
// the device. In that order the first that says something wins, and --print-config shows which it was.

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/session"
)

// knobs are the settings in force.
type knobs struct {
	maxModelLen   int // 0: as long as fits
	maxRows       int // --max-num-batched-tokens
	maxSeqs       int
	maxWaiting    int
	compute       string // as session.LoadOptions wants it, like the next two
	dense         string
	kvType        string
	utilization   float64 // 0: all but a reserve
	prefixCache   bool
	deterministic bool
	interval      int           // tokens an event of a stream; 0: by the load
	keepAlive     time.Duration // below 0: for ever

	swapSpace, swapDisk int64 // bytes for KV pages that are pushed out; swapSpace below 0: what the plan leaves over
	remember            time.Duration
	rememberOnDisk      bool

	origins map[string]string // of the flags that the config file and the command line leave open
	notes   []string          // what was asked for and is done otherwise
}

// device kinds that settings depend on.
const (
	onCPU = "CPU"
	onGPU = "GPU"
)

// standard are the settings that suit a device. On a GPU they are those of OpenAI's and vLLM's guide, but on a small one, where steps of 8192 tokens
// would take the memory that a context needs (2 GiB of 16; gpt-oss-20b's weights are 12.8); the CPU's steps are kept short, since a decode waits for the
// prefill beside it.
func standard(kind string, memory int64) knobs {
	k := knobs{maxRows: 512, maxSeqs: 256, maxWaiting: 2048, kvType: "auto", prefixCache: true, deterministic: true, keepAlive: -1}
	if kind == onGPU {
		k.maxRows, k.deterministic = 8192, false
		switch {
		case memory >= 64<<30:
			k.maxSeqs = 1024
		case memory < 23<<30: // cards of 24 GiB show a little less
			k.maxRows = 2048
		}
	}
	return k
}

// A preset is a point between throughput and latency, with the values of the guide.
type preset struct {
	name    string
	seqs    int
	devices string // the guide's number of GPUs for it
	// interval is of streams. A reader who waits for each token wants each one, a batch job does not look.
	interval int
}

var presets = []preset{
	{"latency", 8, "4 or 8", 1},
	{"balanced", 128, "2", 0},
	{"throughput", 1024, "1", 20},
}

func presetNames() string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// guideRows is the guide's --max-num-batched-tokens.
const guideRows = 8192

// batchFlags are the settings of many requests at once.
func batchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "preset", Category: groupBatch, Usage: "`P` is latency (8 sequences at once), balanced (128) or throughput (1024); the flags below win"},
		&cli.IntFlag{Name: "max-num-seqs", Category: groupBatch, Usage: "compute at most `N` requests at once (default: 256; 1024 on a GPU of 64 GiB)"},
		&cli.IntFlag{Name: "max-num-batched-tokens", Category: groupBatch, Usage: "`N` tokens a step; more is a little faster with long prompts and makes the time between tokens uneven (default: 512 on the CPU, 8192 on a GPU, 2048 on one of less than 24 GiB)"},
		&cli.IntFlag{Name: "max-waiting", Category: groupBatch, Usage: "let `N` requests wait; the next ones get 429 with Retry-After (default: 2048)"},
		&cli.BoolFlag{Name: "enable-prefix-caching", Category: groupBatch, Usage: "do not compute again what prompts have in common; this is the default"},
		&cli.BoolFlag{Name: "no-enable-prefix-caching", Category: groupBatch, Usage: "compute every prompt from its first token on, as when speed is measured"},
		&cli.IntFlag{Name: "stream-interval", Category: groupBatch, Usage: "send `N` tokens in an event of a stream (default: each by itself, more under load)"},
	}
}

// readKnobs makes the settings of what was given. kind and memory are the device's.
func readKnobs(c *cli.Context, kind string, memory int64) (knobs, error) {
	k := standard(kind, memory)
	k.origins = map[string]string{}
	has := func(name string) bool { // chat has fewer flags than serve
		for _, f := range c.Command.Flags {
			if f.Names()[0] == name {
				return true
			}
		}
		return false
	}
	for _, name := range []string{"max-num-seqs", "max-num-batched-tokens", "max-waiting"} {
		k.origins[name] = "default for this " + kind
	}
	if has("preset") && c.String("preset") != "" {
		if err := k.apply(c, c.String("preset"), kind); err != nil {
			return k, err
		}
	}
	for _, f := range []struct {
		name  string
		to    *int
		least int
	}{
		{"max-model-len", &k.maxModelLen, 1}, {"max-num-seqs", &k.maxSeqs, 1}, {"max-num-batched-tokens", &k.maxRows, 1},
		{"max-waiting", &k.maxWaiting, 1}, {"stream-interval", &k.interval, 1},
	} {
		if !has(f.name) || !c.IsSet(f.name) {
			continue
		}
		if *f.to = c.Int(f.name); *f.to < f.least {
			return k, fail(exitUsage, "--%s must be at least %d, not %d", f.name, f.least, *f.to)
		}
		delete(k.origins, f.name)
	}
	if c.IsSet("gpu-memory-utilization") {
		if k.utilization = c.Float64("gpu-memory-utilization"); !(k.utilization >= 0.05 && k.utilization <= 1) {
			return k, fail(exitUsage, "--gpu-memory-utilization must lie between 0.05 and 1, not %v", k.utilization)
		}
	}
	if err := k.readKV(c.String("kv-cache-dtype")); err != nil {
		return k, err
	}
	if kind == onGPU && k.kvType == engine.KVFP8 && os.Getenv("OSSRUN_DECODE_KERNEL") == "persistent" {
		k.notes = append(k.notes, "OSSRUN_DECODE_KERNEL=persistent: that kernel has no phases for a KV cache of 8 bits; steps are launched as graphs")
	}
	if err := k.readNumbers(c.String("compute"), c.String("dense"), kind); err != nil {
		return k, err
	}
	if c.IsSet("deterministic") && !c.Bool("deterministic") && kind == onCPU {
		k.notes = append(k.notes, "--deterministic=false: the CPU engine always gives the same tokens for the same seed")
	} else if c.Bool("deterministic") {
		k.deterministic = true
	}
	if has("no-enable-prefix-caching") {
		off := c.IsSet("no-enable-prefix-caching") && c.Bool("no-enable-prefix-caching")
		on := c.IsSet("enable-prefix-caching") && c.Bool("enable-prefix-caching")
		if on && off {
			return k, fail(exitUsage, "--enable-prefix-caching and --no-enable-prefix-caching contradict each other: leave one out")
		}
		k.prefixCache = !off && (!c.IsSet("enable-prefix-caching") || on)
	}
	if has("keep-alive") {
		var err error
		if k.keepAlive, err = keepAlive(c.String("keep-alive")); err != nil {
			return k, err
		}
	}
	if has("swap-space") {
		if err := k.readKeep(c, kind); err != nil {
			return k, err
		}
	}
	if k.maxSeqs > k.maxRows {
		k.notes = append(k.notes, fmt.Sprintf("%d requests cannot decode in steps of %d tokens: %[2]d run at once; --max-num-batched-tokens raises it", k.maxSeqs, k.maxRows))
		k.maxSeqs = k.maxRows
	}
	return k, nil
}

// apply takes a preset's values, and says what of it this machine cannot hold.
func (k *knobs) apply(c *cli.Context, name, kind string) error {
	for _, p := range presets {
		if p.name != strings.ToLower(name) {
			continue
		}
		from := "preset " + p.name
		k.maxSeqs, k.interval = p.seqs, p.interval
		k.origins["max-num-seqs"], k.origins["stream-interval"] = from, from
		if kind == onCPU {
			if p.seqs > k.maxRows { // each sequence that decodes is a row of the step
				k.maxRows, k.origins["max-num-batched-tokens"] = p.seqs, from
			}
			k.notes = append(k.notes, fmt.Sprintf("%s: steps have %d tokens on the CPU, not the guide's %d, which would hold every decode up for the length of a prompt", from, k.maxRows, guideRows))
		} else {
			k.maxRows, k.origins["max-num-batched-tokens"] = guideRows, from
		}
		if p.devices != "1" {
			k.notes = append(k.notes, fmt.Sprintf("%s: the guide uses %s GPUs for it; this engine uses a second one only for what the first has no room for, so only the batch of %d is as there; %s", from, p.devices, p.seqs, elsewhere))
		}
		return nil
	}
	return fail(exitUsage, "--preset must be %s, not %q", presetNames(), name)
}

// readNumbers takes the kinds of numbers that the engine computes with. On a GPU auto rounds activations to bf16 where they meet the matrix unit, as
// vLLM and transformers do.
func (k *knobs) readNumbers(compute, dense, kind string) error {
	switch k.compute = strings.ToLower(compute); k.compute {
	case "auto":
		if kind == onGPU {
			k.compute = engine.Rounded
		}
	case engine.Exact, engine.Int8:
	case engine.Rounded, engine.MX:
		if kind == onCPU {
			k.compute = "auto"
			k.notes = append(k.notes, fmt.Sprintf("--compute %s: the CPU engine has exact and int8; what auto means is taken", compute))
		}
	default:
		return fail(exitUsage, "--compute must be auto, exact, bf16, mx or int8, not %q", compute)
	}
	switch k.dense = strings.ToLower(dense); k.dense {
	case engine.DenseBF16, engine.DenseQ8:
	default:
		return fail(exitUsage, "--dense must be bf16 or q8, not %q", dense)
	}
	return nil
}

// readKV translates vLLM's names of types of the KV cache.
func (k *knobs) readKV(name string) error {
	switch v := strings.ToLower(name); v {
	case "auto", "bf16", "f32":
		k.kvType = v
	case "bfloat16":
		k.kvType = "bf16"
	case "float32", "float":
		k.kvType = "f32"
	case "fp8", "fp8_e4m3":
		k.kvType = "fp8"
	default:
		return fail(exitUsage, "--kv-cache-dtype must be auto, bf16, fp8 or f32, not %q", name)
	}
	return nil
}

// keepAlive reads a duration as Ollama's users write it: 5m, seconds, 0 for at once, anything below 0 for ever.
func keepAlive(s string) (time.Duration, error) {
	switch strings.ToLower(s) {
	case "never", "forever", "":
		return -1, nil
	}
	if n, err := strconv.Atoi(s); err == nil {
		if n < 0 {
			return -1, nil
		}
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fail(exitUsage, "--keep-alive wants a time such as 5m or 90s, 0 or never, not %q", s)
	}
	return max(d, -1), nil
}

// denseCache is the folder of the 8-bit copies that --dense q8 makes.
func denseCache() string { return filepath.Join(xdg.CacheHome, "ossrun", "dense") }

// load is how a model is loaded with these settings.
func (k *knobs) load() session.LoadOptions {
	return session.LoadOptions{
		MaxModelLen: k.maxModelLen, MaxSeqs: k.maxSeqs, MaxBatchedTokens: k.maxRows, MaxQueued: k.maxWaiting,
		Compute: k.compute, Dense: k.dense, DenseCache: denseCache(), KVCacheDtype: k.kvType, Utilization: k.utilization, NoPrefixCaching: !k.prefixCache, Deterministic: k.deterministic,
		Beside: placement.Beside, Reserve: placement.Reserve,
	}
}

// value is what a flag comes to with these settings; false where the flag's own value is that already.
func (k *knobs) value(name string) (any, bool) {
	switch name {
	case "max-num-seqs":
		return k.maxSeqs, true
	case "max-num-batched-tokens":
		return k.maxRows, true
	case "max-waiting":
		return k.maxWaiting, true
	case "enable-prefix-caching":
		return k.prefixCache, true
	case "no-enable-prefix-caching":
		return !k.prefixCache, true
	case "deterministic":
		return k.deterministic, true
	case "stream-interval":
		return k.interval, k.interval > 0
	}
	return nil, false
}

// printConfig writes the settings of a verb as a config file. What is left to the machine is a comment, so that the file
// can be used on another one.
func printConfig(w io.Writer, c *cli.Context, k *knobs) error {
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		visible, ok := f.(cli.VisibleFlag)
		if name == "config" || name == "print-config" || name == "help" || ok && !visible.IsVisible() && !c.IsSet(name) {
			continue
		}
		from := origin(c, name)
		if o, ok := k.origins[name]; ok && from == "default" {
			from = o
		}
		v, ok := k.value(name)
		if !ok {
			v = c.Value(name)
		}
		if name == "api-key" && c.String(name) != "" {
			if _, err := fmt.Fprintf(w, "# %-28s # %s; not shown\n", name+":", from); err != nil {
				return err
			}
			continue
		}
		text, err := yaml.Marshal(v)
		if err != nil {
			return fail(exitFailure, "%s: %s", name, err)
		}
		line := name + ": " + strings.TrimSpace(string(text))
		if !ok && !c.IsSet(name) && (v == "" || v == 0 || v == 0.0 || v == uint64(0)) {
			line, from = "# "+name+":", "default: "+leftOpen(f)
		}
		if _, err := fmt.Fprintf(w, "%-30s # %s\n", line, from); err != nil {
			return err
		}
	}
	return nil
}

// leftOpen says what a setting without a value does.
func leftOpen(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return "unset"
	}
	_, usage := unquote(doc.GetUsage())
	if _, after, ok := strings.Cut(usage, "(default: "); ok {
		return strings.TrimSuffix(after, ")")
	}
	return "unset"
}

// say tells what of the settings is done otherwise than it was asked for.
func (k *knobs) say(t Terminal) {
	for _, n := range k.notes {
		fmt.Fprintf(t.Err, "ossrun: %s\n", n)
	}
}
