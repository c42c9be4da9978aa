package kernels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The grids of kernels that loop over their work, on every chip and for every batch bucket.

// looping is a launch whose blocks take work until there is none: of columns by row groups or
// slots, or in one line.
type looping struct {
	Launch
	registers  int // blocks of a processor that the source leaves registers for
	shared     int // bytes of a block
	work, most int // of a copy, in what a block takes at a time; blocks that copies have
}

func loopingOn(t Target, s models.Spec, rows int) (all []looping) {
	r, warps := Rows{Most: rows}, threads/t.Warp
	add := func(l Launch, units int) {
		registers := residentMany
		if strings.HasSuffix(l.Kernel, "_1") {
			registers = residentOne
		}
		all = append(all, looping{l, registers, int(l.Shared), divideUp(units, warps),
			int(l.Grid[1])})
	}
	e := Experts{Slots: rows * s.ExpertsPerToken, Experts: s.Experts, N: s.Intermediate,
		K: s.Hidden, Top: s.ExpertsPerToken}
	if rows <= DecodeRows {
		h := Heads{Query: s.Heads, KV: s.KVHeads, Dim: s.HeadDim}
		add(t.DecodeQKV([]Product{{Rows: r, K: s.Hidden}}, 0, Cache{}, 0, h, 0, Scratch{}),
			h.Width()/2)
		for _, p := range []Product{{Rows: r, K: s.Hidden, N: h.Width()},
			{Rows: r, K: h.Query * h.Dim, N: s.Hidden}, {Rows: r, K: s.Hidden, N: 512}} {
			add(t.DecodeLinear(p, 0, 0, Scratch{}), divideUp(p.N, 2))
			if p.Weights = "_q8"; rows == 1 {
				units := divideUp(p.N, 64) * 4
				if t.Shared == amdShared {
					units /= 2
				}
				add(t.DecodeLinear(p, 0, 0, Scratch{}), units*warps)
			}
		}
		add(t.DecodeGateUp(r, 0, e), s.Intermediate)
		add(t.DecodeDown(r, 0, 0, 0, s.ExpertsPerToken, Experts{N: s.Hidden, K: s.Intermediate}),
			s.Hidden)
	}
	for _, f := range []Form{OneTerm, TwoTerms} {
		columns := t.streamColumns(e, f)
		_, shared := t.streamMemory(columns, e.K)
		tiles := divideUp(e.Slots*int(f), columns) + min(e.Slots, e.Experts)
		l := t.StreamExperts(e, f)
		all = append(all, looping{l, streamResident(columns), shared, tiles * 2 * e.N / streamRows,
			int(l.Grid[0])})
	}
	if t.Unit == WGMMA && rows > DecodeRows {
		l := t.StreamWarpgroups(e)
		column := 128 * divideUp(e.K, 64)
		tiles := divideUp(e.Slots, (int(l.Shared)-wgmmaSlack)/column) + min(e.Slots, e.Experts)
		all = append(all, looping{l, 1, int(l.Shared), tiles * divideUp(2*e.N, 256),
			int(l.Grid[0])})
	}
	return all
}

// inPieces are the launches of eight rows on the unit, with their tiles and k.
func inPieces(t Target, s models.Spec, rows int) (all []looping) {
	meet := Scratch{Partial: 256, Arrived: 256}
	h := Heads{Query: s.Heads, KV: s.KVHeads, Dim: s.HeadDim}
	r, q := Rows{Most: rows}, h.Query*h.Dim
	for _, p := range []Product{{Rows: r, K: q, N: s.Hidden}, {Rows: r, K: s.Hidden, N: s.Vocab},
		{Rows: r, K: q, N: s.Hidden, Weights: "_q8"}} {
		all = append(all, looping{Launch: t.DecodeLinear(p, 0, 0, meet), work: divideUp(p.N, 64),
			most: p.K})
	}
	return append(all, looping{Launch: t.DecodeQKV([]Product{{Rows: r, K: s.Hidden}}, 0,
		Cache{}, 0, h, 0, meet), work: divideUp(h.Width(), 64), most: s.Hidden})
}

// checkPiecesOf: no more blocks than are resident, and no fewer pieces than fill the card.
func checkPiecesOf(t *testing.T, target Target, name string, l looping, room int) {
	t.Helper()
	const static = 9 << 10
	blocks, pieces := int(l.Grid[0]*l.Grid[1]*l.Grid[2]), int(l.Grid[2])
	fit := target.Processors * min(residentMany, room/(int(l.Shared)+static+blockReserve))
	switch {
	case !strings.HasSuffix(l.Kernel, "_8"):
		t.Errorf("%s is not by the unit: %s", name, l.Kernel)
	case blocks > fit:
		t.Errorf("%s, %s: %d blocks, %d fit", name, l.Kernel, blocks, fit)
	case l.work*(pieces+1) <= fit && pieces < min(16, l.most/64):
		t.Errorf("%s, %s: %d pieces of %d tiles, %d blocks would fit", name, l.Kernel, pieces,
			l.work, fit)
	}
}

// TestGridsFit: a grid never has more blocks than are resident, since the last ones would wait for
// a place, nor fewer than fit where there is work for them.
func TestGridsFit(t *testing.T) {
	grids := 0
	for _, chip := range detect.Chips() {
		a, err := ArchFor(chip.Arch)
		if err != nil {
			continue
		}
		target := Target{Warp: 32, Unit: a.Unit, Processors: chip.Units,
			Shared: SharedOf(chip.Arch)}
		switch { // RDNA's are pairs of compute units
		case strings.HasPrefix(chip.Arch, "gfx9"):
			target.Warp = 64
		case strings.HasPrefix(chip.Arch, "gfx1"):
			target.Processors /= 2
		}
		if target.Shared != chip.Shared {
			t.Errorf("%s: %d bytes of shared memory, chips.json has %d", chip.ID, target.Shared,
				chip.Shared)
		}
		for _, spec := range []models.Spec{models.Spec20B(), models.Spec120B()} {
			if !target.Streams(spec.Hidden, spec.Intermediate) {
				t.Errorf("%s cannot stream %s", chip.ID, spec.Name)
				continue
			}
			for _, rows := range engine.Buckets(512) {
				for _, l := range inPieces(target, spec, min(rows, DecodeRows)) {
					grids++
					room := chip.Shared + blockReserve
					if strings.HasPrefix(chip.Arch, "gfx1") {
						room *= 2
					}
					checkPiecesOf(t, target, chip.ID+", "+spec.Name, l, room)
				}
				for _, l := range loopingOn(target, spec, rows) {
					grids++
					blocks := int(l.Grid[0] * l.Grid[1])
					copies, room := blocks/l.most, chip.Shared+blockReserve
					if strings.HasPrefix(chip.Arch, "gfx1") {
						room *= 2
					}
					fit := min(l.registers, room/(l.shared+blockReserve))
					room = target.Processors * fit
					name := fmt.Sprintf("%s, %s, %d rows: %s", chip.ID, spec.Name, rows, l.Kernel)
					switch {
					case fit < 1:
						t.Errorf("%s: a block does not fit", name)
					case blocks > room && l.most > 1:
						t.Errorf("%s: %d blocks, %d fit", name, blocks, room)
					case blocks+copies <= room && l.most < l.work:
						t.Errorf("%s: %d blocks for %d, %d would fit", name, blocks,
							copies*l.work, room)
					}
				}
			}
		}
	}
	if grids < 1000 {
		t.Errorf("only %d grids", grids)
	}
}
