// Defaults for options that the user left open: presets, and the defaults of a CPU and of a GPU.
//
// What must stay true: the user's value wins over the preset's, and the preset's over the device's;
// a request that cannot be met is reported in a note, never dropped silently.

package serve

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sched/draft"
)

type Options struct {
	Model            string   // "": the best cached one that fits
	Adapters         []string // to add to it, as lora.Find reads them
	ServedNames      []string // set: the process serves one model, under these names
	Settings         engine.Settings
	Preset           string // "" or one of Presets
	Speculate        bool   // drafts were requested; otherwise on where they pay
	NonDeterministic bool   // Settings.Deterministic was set to false, not left open

	StreamInterval int // tokens in an event of a stream; 0: by the load
	// idle time before a model is unloaded; below 0: never
	KeepAlive  time.Duration
	Keep       KeepOptions
	MaxBody    int64 // limit of a server's requests, bytes; 0: no server
	ToolMemory int64 // of the programs that a server's tools start, bytes

	// Fetch downloads a named model before it is looked for, if the user wants that; may be nil.
	Fetch func(ctx context.Context, name string) error

	Notify           func(line string) // notices for the user
	NotifyBackground func(line string) // likewise, while turns may run; nil: Notify
	// Progress shows a long work until it is done; may be nil.
	Progress func(what string) (show func(done, total int64), done func())
}

func DefaultOptions() Options {
	return Options{KeepAlive: -1, Settings: engine.Settings{Device: "auto",
		Drafts: draft.Most},
		Keep: KeepOptions{SwapSpace: -1, Remember: 24 * time.Hour, RememberOnDisk: true}}
}

// EffectiveOptions is Options with all defaults filled in.
type EffectiveOptions struct {
	Options
	Notes      []string // on requests that were not met
	FromPreset []string // flags set by the preset
}

// A preset is a point between throughput and latency, with the values of vLLM's guide for gpt-oss.
type preset struct {
	maxNumSeqs int
	devices    string // the guide's number of GPUs
	// streamInterval: people read token by token, batch jobs in bulk.
	streamInterval int
}

var presets = map[string]preset{
	"latency":    {8, "4 or 8", 1},
	"balanced":   {128, "2", 0},
	"throughput": {1024, "1", 20},
}

// Presets are the names of the presets, the one with the fewest sequences first.
var Presets = []string{"latency", "balanced", "throughput"}

// guideTokens is the guide's --max-num-batched-tokens.
const guideTokens = 8192

// deviceDefaults returns a device's defaults. A GPU has those of OpenAI's and vLLM's guides, except
// small ones: steps of 8192 tokens would take memory that a context needs (2 GiB of 16;
// gpt-oss-20b's weights are 12.8). The CPU's steps are short, because decodes wait for the prefill
// in the same step.
func deviceDefaults(onGPU bool, memory int64) (maxNumBatchedTokens, maxNumSeqs int) {
	switch {
	case !onGPU:
		return 512, 256
	case memory >= 64<<30:
		return guideTokens, 1024
	case memory < 23<<30: // cards of 24 GiB show a little less
		return 2048, 256
	}
	return guideTokens, 256
}

const defaultMaxWaiting = 2048

// withDefaults fills open settings with the device's defaults.
func (o Options) withDefaults(onGPU bool, memory int64) EffectiveOptions {
	out := EffectiveOptions{Options: o}
	note := func(format string, args ...any) {
		out.Notes = append(out.Notes, fmt.Sprintf(format, args...))
	}
	s := &out.Settings
	tokens, seqs := deviceDefaults(onGPU, memory)
	if p, ok := presets[o.Preset]; ok {
		notePreset := func(name string, value int) {
			if value == 0 {
				out.FromPreset = append(out.FromPreset, name)
			}
		}
		notePreset("max-num-seqs", s.MaxNumSeqs)
		if p.streamInterval > 0 {
			notePreset("stream-interval", o.StreamInterval)
		}
		seqs, out.StreamInterval = p.maxNumSeqs, cmp.Or(o.StreamInterval, p.streamInterval)
		if onGPU {
			tokens = guideTokens
			notePreset("max-num-batched-tokens", s.MaxNumBatchedTokens)
		} else {
			if seqs > tokens { // each decoding sequence is a token of the step
				tokens = seqs
				notePreset("max-num-batched-tokens", s.MaxNumBatchedTokens)
			}
			note("preset %s: steps have %d tokens on the CPU, not the guide's %d, which would "+
				"hold every decode up for the length of a prompt", o.Preset, tokens, guideTokens)
		}
		if p.devices != "1" {
			note("preset %s: the guide uses %s GPUs for it; this engine uses a second one only "+
				"for what does not fit the first, so only the batch of %d is the same. "+
				"ossrun vllm plan shows vLLM's command",
				o.Preset, p.devices, p.maxNumSeqs)
		}
	}
	s.MaxNumBatchedTokens = cmp.Or(s.MaxNumBatchedTokens, tokens)
	s.MaxNumSeqs = cmp.Or(s.MaxNumSeqs, seqs)
	s.MaxWaiting = cmp.Or(s.MaxWaiting, defaultMaxWaiting)
	if s.MaxNumSeqs > s.MaxNumBatchedTokens {
		note("--max-num-batched-tokens %[2]d limits the server to %[2]d requests at a time "+
			"(--max-num-seqs is %[1]d)", s.MaxNumSeqs, s.MaxNumBatchedTokens)
		s.MaxNumSeqs = s.MaxNumBatchedTokens
	}
	if !onGPU {
		if o.NonDeterministic {
			note("--deterministic=false: the CPU engine always gives the same tokens for the " +
				"same seed")
		}
		s.Deterministic = true
		if s.Compute == engine.Rounded || s.Compute == engine.MX {
			note("--compute %s: the CPU engine has only exact and int8; it uses what auto would",
				s.Compute)
			s.Compute = ""
		}
	} else {
		s.Compute = cmp.Or(s.Compute, engine.Rounded)
		out.Keep.SwapSpace = max(0, out.Keep.SwapSpace)
		if !o.Speculate { // no measurement shows that they pay there
			s.Drafts = 0
		}
	}
	if s.NoPrefixCaching && (o.Keep.SwapSpace > 0 || o.Keep.SwapDisk > 0) {
		note("--no-enable-prefix-caching: no KV pages are kept, so there is nothing to swap")
	}
	return out
}
