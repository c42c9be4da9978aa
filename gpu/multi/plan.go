package multi

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Planning decides which layers are on which card, which experts on the CPU, how long the context
// can be, and which speed the memory's bandwidth then allows.
//
// The cheapest is tried first: all on one card; then layers over several, each with its cache; then
// experts on the CPU, last layers first, because a token reads only some of them.
//
// What must stay true: no card is ever planned beyond its Room; the figures are sums of tensor
// sizes, engine.PlanFor's scratch and Extra, never guesses; a plan that does not fit is an error
// that says by how much.

// CardMemory is a GPU with memory to give.
type CardMemory struct {
	Name      string
	Number    int          // for people
	Free      int64        // bytes, as engine.Device.Memory reports them
	Total     int64        // bytes
	Bandwidth float64      // byte/s of its memory, measured or from the catalogue; 0: not known
	Shared    bool         // its memory is the host's: experts on the CPU would use the same bytes
	Unit      kernels.Unit // its matrix unit
}

// Host is the machine around the cards.
type Host struct {
	Free      int64   // bytes
	Bandwidth float64 // byte/s; 0: not known
}

// Rows is the largest step unless the settings name another.
const Rows = 2048

type Share struct {
	Card        int   // index into the cards
	Number      int   // of the card
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
	// tokens/s of one stream that bandwidth allows at an empty context; 0: not known
	Ceiling float64
}

func (p Plan) CPUExpertLayers() int {
	n := 0
	for _, s := range p.Shares {
		n += len(s.CPUExperts)
	}
	return n
}

// Reserve is the part of a device's free memory that is left for a display if the settings have no
// utilization.
const Reserve = 512 << 20

// shortest is the least useful context.
const shortest = 4096

// planner is the input of a plan, and the parts of the model in bytes.
type planner struct {
	spec  models.Spec
	cards []CardMemory
	host  Host
	o     engine.Settings

	embedding, unembedding int64
	dense, experts         []int64 // by layer
	active                 float64 // share of a layer's experts that a token reads
	kv                     engine.CacheLayers
	scratch                int64 // of every card, with Extra
	choosing               int64 // logits and the choice of tokens, on the last card
	staging                int64 // of a card that streams experts: two areas for a layer's
}

func (z *planner) measure() error {
	s, o := z.spec, z.o
	z.dense, z.experts = make([]int64, s.Layers), make([]int64, s.Layers)
	z.kv = engine.AllLayers(s, o.KVCacheDtype)
	z.active = float64(s.ExpertsPerToken) / float64(s.Experts)
	eo := engine.Settings{KVCacheDtype: o.KVCacheDtype, MaxNumBatchedTokens: o.MaxNumBatchedTokens,
		MaxLogits: min(o.MaxNumSeqs, o.MaxNumBatchedTokens), MaxNumSeqs: o.MaxNumSeqs, Pages: 1,
		Compute: cmp.Or(o.Compute, engine.Int8), Dense: o.Dense, Deterministic: o.Deterministic}
	p, err := engine.Record(s, eo, eo.Rows())
	if err != nil {
		return err
	}
	z.weigh(p)
	all, err := z.extra(eo)
	if err != nil {
		return err
	}
	eo.MaxLogits = 1
	// a card that does not sample holds the logits of no row; one row is little
	fewest, err := z.extra(eo)
	z.scratch, z.choosing = p.Layout()+fewest, all-fewest
	return err
}

// extra is the largest Extra of all cards: cards of several kinds are rare.
func (z *planner) extra(o engine.Settings) (most int64, err error) {
	seen := map[kernels.Unit]bool{}
	for _, c := range z.cards {
		if seen[c.Unit] {
			continue
		}
		seen[c.Unit] = true
		bytes, err := device.Extra(z.spec, o, c.Unit)
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}

func (z *planner) weigh(p *engine.Program) {
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
func (z planner) pool(pages, from, to int) int64 {
	z.kv.From, z.kv.To = from, to
	return int64(pages) * z.kv.PageBytes()
}

// pages is the pool for a sequence: the full layers hold all positions, the window layers the
// window and a step's rows.
func (z *planner) pages(context int) int {
	full := (context + engine.PageTokens - 1) / engine.PageTokens
	window := (z.spec.Window+z.o.MaxNumBatchedTokens+engine.PageTokens-1)/engine.PageTokens + 2
	return full + min(full, window)*engine.WindowPages(z.o.KVCacheDtype)
}

// PlanFor plans a model of shape s. It reads the context, the step's rows and sequences, the modes,
// the utilization and the layers on the CPU; unset values take a GPU's defaults.
func PlanFor(s models.Spec, cards []CardMemory, host Host, o engine.Settings) (Plan, error) {
	return makePlan(s, cards, host, o, false)
}

// makePlan is PlanFor; with staging, a card with experts on the CPU keeps room to stream two layers
// of them through.
func makePlan(s models.Spec, cards []CardMemory, host Host, o engine.Settings, staging bool) (Plan,
	error) {
	if len(cards) == 0 {
		return Plan{}, fmt.Errorf("there is no GPU to place %s on", s.Name)
	}
	o.MaxNumBatchedTokens = cmp.Or(o.MaxNumBatchedTokens, Rows)
	o.MaxNumSeqs = cmp.Or(o.MaxNumSeqs, 256)
	o.KVCacheDtype = cmp.Or(o.KVCacheDtype, "bf16")
	z := &planner{spec: s, cards: cards, host: host, o: o}
	if err := z.measure(); err != nil {
		return Plan{}, err
	}
	if staging {
		z.staging = stagingAreas * slices.Max(z.experts)
	}
	longest := min(s.MaxPosition, maxContext)
	if o.MaxModelLen > longest {
		return Plan{}, fmt.Errorf("a context of %d tokens is longer than %s was made for (%d)",
			o.MaxModelLen, s.Name, longest)
	}
	if o.CPUExperts < 0 || o.CPUExperts > s.Layers {
		return Plan{}, fmt.Errorf("the experts of %d layers are wanted on the CPU, %s has %d",
			o.CPUExperts, s.Name, s.Layers)
	}
	if o.MaxModelLen > 0 {
		return z.place(o.MaxModelLen)
	}
	// No context is given: plan the longest that fits. A long context is worth less than experts on
	// the card, so first the fewest experts on the CPU, then the longest context.
	least, err := z.place(min(shortest, longest))
	if err != nil {
		return Plan{}, err
	}
	best, step := least, 1024
	for low, high := least.Context/step, longest/step; low < high; {
		mid := (low + high + 1) / 2
		p, err := z.place(mid * step)
		if err == nil && p.CPUExpertLayers() <= least.CPUExpertLayers() &&
			len(p.Shares) <= len(least.Shares) {
			best, low = p, mid
		} else {
			high = mid - 1
		}
	}
	return best, nil
}

// maxContext is the published models' trained context, with YaRN.
const maxContext = 131072

// Room is how many of a card's free bytes may be filled: the utilization's share of the whole card,
// or with utilization 0 all but a reserve.
func Room(total, free int64, utilization float64) int64 {
	if utilization > 0 {
		return max(0, min(free, int64(float64(total)*min(utilization, 1))))
	}
	return max(0, free-Reserve)
}

func room(c CardMemory, o engine.Settings) int64 {
	return Room(cmp.Or(c.Total, c.Free), c.Free, o.GPUMemoryUtilization)
}

// place tries one context: on as few cards as hold it, then with experts on the CPU.
func (z *planner) place(context int) (Plan, error) {
	for n := 1; n <= len(z.cards) && z.o.CPUExperts == 0; n++ {
		if p, ok := z.spread(n, context, 0); ok {
			return z.finish(p), nil
		}
	}
	// bytes of experts that the host would have to hold
	var hostNeed int64
	// the last layers' experts first
	for onCPU := 1; onCPU <= z.spec.Layers && !z.cards[0].Shared; onCPU++ {
		hostNeed += z.experts[z.spec.Layers-onCPU]
		if onCPU < z.o.CPUExperts {
			continue
		}
		p, ok := z.spread(len(z.cards), context, onCPU)
		if !ok {
			continue
		}
		need := hostNeed
		for _, share := range p.Shares {
			if z.cards[share.Card].Shared {
				need += share.Bytes()
			}
		}
		if need > z.host.Free {
			break
		}
		p.HostUsed = hostNeed
		return z.finish(p), nil
	}
	return Plan{}, z.noRoom(context, hostNeed)
}

// spread fills the first n cards with layers; the last onCPU layers' experts take no room.
func (z *planner) spread(n, context, onCPU int) (Plan, bool) {
	p := Plan{Context: context, Pages: z.pages(context)}
	layer, layers := 0, z.spec.Layers
	for i, c := range z.cards[:n] {
		share := Share{Card: i, Number: c.Number, From: layer, Scratch: z.scratch}
		free := room(c, z.o) - z.scratch
		if layer == 0 {
			share.Embedding, share.Weights = true, z.embedding
		}
		for ; layer < layers; layer++ {
			next := share // with this layer
			next.Weights += z.dense[layer]
			next.KV = z.pool(p.Pages, share.From, layer+1)
			if layer >= layers-onCPU {
				next.CPUExperts, next.Staging = append(next.CPUExperts, layer), z.staging
			} else {
				next.Weights += z.experts[layer]
			}
			if layer == layers-1 {
				next.Weights, next.Scratch = next.Weights+z.unembedding, next.Scratch+z.choosing
			}
			if next.Bytes()-z.scratch > free {
				break
			}
			share = next
		}
		share.To = layer
		share.Unembedding = layer == layers
		if share.To > share.From {
			p.Shares = append(p.Shares, share)
		}
		if layer == layers {
			return p, true
		}
	}
	return p, false
}

// finish computes the bandwidth's ceiling: a token reads all dense weights and its experts.
func (z *planner) finish(p Plan) Plan {
	var seconds float64
	for _, s := range p.Shares {
		var onCard, onHost float64
		for l := s.From; l < s.To; l++ {
			onCard += float64(z.dense[l])
			if slices.Contains(s.CPUExperts, l) {
				onHost += float64(z.experts[l]) * z.active
			} else {
				onCard += float64(z.experts[l]) * z.active
			}
		}
		if s.Unembedding {
			onCard += float64(z.unembedding)
		}
		seconds += onCard / z.cards[s.Card].Bandwidth // +Inf if it is not known
		if onHost > 0 {
			seconds += onHost / z.host.Bandwidth
		}
	}
	if !math.IsInf(seconds, 0) && seconds > 0 {
		p.Ceiling = 1 / seconds
	}
	return p
}
