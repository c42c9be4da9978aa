package multi

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Planning decides what of a model lies where: which layers on which card, which experts on the
// CPU, how long the context can be, and what the memory's speed then allows.
//
// The order tries first what costs least: all on one card; then layers over several cards, each
// with its own cache; then experts on the CPU, last layers first, while attention, the dense
// weights and the KV cache stay on the cards, because a token reads all of those and only some
// experts.
//
// What must stay true: no card is ever planned beyond its Room; the figures are sums of tensor
// sizes, engine.PlanFor's scratch and Extra, never guesses; a plan that does not fit is an error
// that says by how much.

// Card is a GPU with memory to give.
type Card struct {
	Name      string
	Free      int64   // bytes that a device on it says are free (engine.Device.Memory)
	Total     int64   // bytes
	Bandwidth float64 // byte/s of its memory, measured or from the catalogue; 0: not known
	Shared    bool    // its memory is the host's: experts on the CPU would use the same bytes
}

// Host is the machine around the cards.
type Host struct {
	Free      int64   // bytes
	Bandwidth float64 // byte/s; 0: not known
}

// options are what a plan is made for: a user's settings, and what the loader decides.
type options struct {
	engine.Settings
	sequences int  // sequences of MaxModelLen tokens at once
	staging   bool // a card with experts on the CPU keeps room to stream two layers of them through
}

// Rows is the largest step unless the settings name another.
const Rows = 2048

type Share struct {
	Card        int   // index into the cards
	From, To    int   // its layers, To not included
	CPUExperts  []int // those of its layers whose experts the CPU computes
	Embedding   bool
	Unembedding bool
	Weights     int64 // bytes
	KV          int64 // bytes
	Scratch     int64 // bytes, with Extra
	Staging     int64 // bytes
}

func (s Share) Bytes() int64 { return s.Weights + s.KV + s.Scratch + s.Staging }

type Plan struct {
	Shares   []Share
	HostUsed int64 // bytes of experts on the CPU
	Context  int   // tokens
	Pages    int   // of the pool, on each card for its own layers
	// decode tokens/s of one stream at an empty context that memory bandwidth allows; 0: a
	// bandwidth is not known
	Ceiling float64
}

func (p Plan) CPUExpertLayers() int {
	n := 0
	for _, s := range p.Shares {
		n += len(s.CPUExperts)
	}
	return n
}

// shared is how many bytes the plan takes of the host's memory on cards that have none of their
// own.
func (p Plan) shared(cards []Card) (bytes int64) {
	for _, s := range p.Shares {
		if cards[s.Card].Shared {
			bytes += s.Bytes()
		}
	}
	return bytes
}

// Reserve is the part of a device's free memory that is left for a display when the settings do not
// say how much may be used.
const Reserve = 512 << 20

// shortest is the least context that is worth a start.
const shortest = 4096

// sizes are the parts of a model in bytes.
type sizes struct {
	embedding, unembedding int64
	dense, experts         []int64 // by layer
	active                 float64 // share of a layer's experts that a token reads
	kv                     engine.CacheLayers
	scratch                int64 // of every card, with Extra
	choosing               int64 // logits and the choice of tokens, on the last card
}

func measure(s models.Spec, o options) (sizes, error) {
	z := sizes{dense: make([]int64, s.Layers), experts: make([]int64, s.Layers),
		kv:     engine.AllLayers(s, o.KVCacheDtype),
		active: float64(s.ExpertsPerToken) / float64(s.Experts)}
	eo := engine.Settings{KVCacheDtype: o.KVCacheDtype, MaxNumBatchedTokens: o.MaxNumBatchedTokens,
		MaxLogits: min(o.MaxNumSeqs, o.MaxNumBatchedTokens), MaxNumSeqs: o.MaxNumSeqs, Pages: 1,
		Compute: cmp.Or(o.Compute, engine.Int8), Dense: o.Dense, Deterministic: o.Deterministic}
	p, err := engine.Record(s, eo, eo.Rows())
	if err != nil {
		return z, err
	}
	z.weigh(p)
	all, err := device.Extra(s, eo)
	if err != nil {
		return z, err
	}
	eo.MaxLogits = 1
	// a card that does not sample holds the logits of no row; one row is little
	fewest, err := device.Extra(s, eo)
	if err != nil {
		return z, err
	}
	z.scratch, z.choosing = p.Layout()+fewest, all-fewest
	return z, nil
}

func (z *sizes) weigh(p *engine.Program) {
	for _, b := range p.Buffers {
		if b.Home != engine.Weight {
			continue
		}
		var layer int
		switch _, err := fmt.Sscanf(b.Name, "model.layers.%d.", &layer); {
		case b.Name == "model.embed_tokens.weight":
			z.embedding += p.BytesOf(b)
		case err != nil:
			z.unembedding += p.BytesOf(b)
		case strings.Contains(b.Name, ".mlp.experts."):
			z.experts[layer] += p.BytesOf(b)
		default:
			z.dense[layer] += p.BytesOf(b)
		}
	}
}

// pool is the KV of the layers [from, to) in every page.
func (z sizes) pool(pages, from, to int) int64 {
	z.kv.From, z.kv.To = from, to
	return int64(pages) * z.kv.PageBytes()
}

// staging is two areas for a layer's experts.
func (z sizes) staging() (most int64) {
	for _, n := range z.experts {
		most = max(most, n)
	}
	return 2 * most
}

// pages is the pool for a number of sequences: the full layers hold all positions, the window
// layers the window and a step's rows.
func pages(s models.Spec, o options, context int) int {
	full := (context + engine.PageTokens - 1) / engine.PageTokens
	window := min(full, (s.Window+o.MaxNumBatchedTokens+engine.PageTokens-1)/engine.PageTokens+2)
	return (full + window*engine.WindowPages(o.KVCacheDtype)) * o.sequences
}

// PlanFor plans a model of shape s. Of the settings it reads the context, the step's rows and
// sequences, the modes, the utilization and the layers on the CPU; what is left open takes the
// defaults of a GPU.
func PlanFor(s models.Spec, cards []Card, host Host, o engine.Settings) (Plan, error) {
	return makePlan(s, cards, host, options{Settings: o, sequences: 1})
}

func makePlan(s models.Spec, cards []Card, host Host, o options) (Plan, error) {
	if len(cards) == 0 {
		return Plan{}, fmt.Errorf("there is no GPU to place %s on", s.Name)
	}
	o.MaxNumBatchedTokens = cmp.Or(o.MaxNumBatchedTokens, Rows)
	o.MaxNumSeqs = cmp.Or(o.MaxNumSeqs, 256)
	o.KVCacheDtype = cmp.Or(o.KVCacheDtype, "bf16")
	z, err := measure(s, o)
	if err != nil {
		return Plan{}, err
	}
	asked := o.MaxModelLen
	longest := min(s.MaxPosition, maxContext)
	if asked > longest {
		return Plan{}, fmt.Errorf("a context of %d tokens is longer than %s was made for (%d)",
			asked, s.Name, longest)
	}
	if o.CPUExperts < 0 || o.CPUExperts > s.Layers {
		return Plan{}, fmt.Errorf("the experts of %d layers are wanted on the CPU, %s has %d",
			o.CPUExperts, s.Name, s.Layers)
	}
	if asked > 0 {
		return z.place(s, cards, host, o, asked)
	}
	// No context is given: plan the longest that fits. A long context is worth less than experts on
	// the card, so first the fewest experts on the CPU, then the longest context.
	least, err := z.place(s, cards, host, o, min(shortest, longest))
	if err != nil {
		return Plan{}, err
	}
	best, step := least, 1024
	for low, high := least.Context/step, longest/step; low < high; {
		mid := (low + high + 1) / 2
		p, err := z.place(s, cards, host, o, mid*step)
		if err == nil && p.CPUExpertLayers() <= max(least.CPUExpertLayers(), 0) &&
			len(p.Shares) <= len(least.Shares) {
			best, low = p, mid
		} else {
			high = mid - 1
		}
	}
	return best, nil
}

// maxContext is what the published models were trained for, with YaRN.
const maxContext = 131072

// Room is how many of a card's free bytes may be filled: the share of the whole card that was
// allowed, or with utilization 0 all but a reserve.
func Room(total, free int64, utilization float64) int64 {
	if utilization > 0 {
		return max(0, min(free, int64(float64(total)*min(utilization, 1))))
	}
	return max(0, free-Reserve)
}

func room(c Card, o options) int64 {
	return Room(cmp.Or(c.Total, c.Free), c.Free, o.GPUMemoryUtilization)
}

// place tries one context: on as few cards as hold it, then with experts on the CPU.
func (z sizes) place(s models.Spec, cards []Card, host Host, o options, context int) (Plan, error) {
	for n := 1; n <= len(cards) && o.CPUExperts == 0; n++ {
		if p, ok := z.spread(s, cards[:n], o, context, 0); ok {
			return z.finish(p, cards, host), nil
		}
	}
	// bytes of experts that the host would have to hold
	var hostNeed int64
	// the last layers' experts first
	for onCPU := 1; onCPU <= s.Layers && !cards[0].Shared; onCPU++ {
		hostNeed += z.experts[s.Layers-onCPU]
		if onCPU < o.CPUExperts {
			continue
		}
		p, ok := z.spread(s, cards, o, context, onCPU)
		if !ok {
			continue
		}
		if hostNeed+p.shared(cards) > host.Free {
			return Plan{}, z.noRoom(s, cards, host, o, context, hostNeed)
		}
		p.HostUsed = hostNeed
		return z.finish(p, cards, host), nil
	}
	return Plan{}, z.noRoom(s, cards, host, o, context, hostNeed)
}

// spread fills the cards in order with layers; the experts of the last onCPU layers take no room.
func (z sizes) spread(s models.Spec, cards []Card, o options, context, onCPU int) (Plan, bool) {
	p := Plan{Context: context, Pages: pages(s, o, context)}
	layer := 0
	for i, c := range cards {
		share := Share{Card: i, From: layer, Scratch: z.scratch, Embedding: layer == 0}
		left := room(c, o) - z.scratch
		if share.Embedding {
			share.Weights += z.embedding
		}
		for ; layer < s.Layers; layer++ {
			need := z.dense[layer]
			cpu := layer >= s.Layers-onCPU
			if !cpu {
				need += z.experts[layer]
			}
			last := int64(0)
			if layer == s.Layers-1 {
				last = z.unembedding + z.choosing
			}
			pool, staging := z.pool(p.Pages, share.From, layer+1), share.Staging
			if cpu && o.staging {
				staging = z.staging()
			}
			if share.Weights+need+last+pool+staging > left {
				break
			}
			share.Weights += need
			if layer == s.Layers-1 {
				share.Weights, share.Scratch = share.Weights+z.unembedding, share.Scratch+z.choosing
			}
			share.KV, share.Staging = pool, staging
			if cpu {
				share.CPUExperts = append(share.CPUExperts, layer)
			}
		}
		share.To = layer
		share.Unembedding = layer == s.Layers
		if share.To > share.From {
			p.Shares = append(p.Shares, share)
		}
		if layer == s.Layers {
			return p, true
		}
	}
	return p, false
}

// finish computes what memory bandwidth allows: a token reads all dense weights, the unembedding
// and its share of every layer's experts, one card after the other.
func (z sizes) finish(p Plan, cards []Card, host Host) Plan {
	var seconds float64
	for _, s := range p.Shares {
		var onCard, onHost float64
		cpu := map[int]bool{}
		for _, l := range s.CPUExperts {
			cpu[l] = true
		}
		for l := s.From; l < s.To; l++ {
			onCard += float64(z.dense[l])
			if cpu[l] {
				onHost += float64(z.experts[l]) * z.active
			} else {
				onCard += float64(z.experts[l]) * z.active
			}
		}
		if s.Unembedding {
			onCard += float64(z.unembedding)
		}
		seconds += onCard / cards[s.Card].Bandwidth // +Inf where it is not known
		if onHost > 0 {
			seconds += onHost / host.Bandwidth
		}
	}
	if !math.IsInf(seconds, 0) && seconds > 0 {
		p.Ceiling = 1 / seconds
	}
	return p
}
