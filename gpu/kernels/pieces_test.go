package kernels

import (
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
)

// Matrices whose k is in pieces, on every NVIDIA chip: what they need of a scratch and of a
// processor, and on an H200 how many blocks they have.

func TestPiecesFit(t *testing.T) {
	small := models.Spec{Hidden: 192, Heads: 8, KVHeads: 2, HeadDim: 64, Vocab: 200, Experts: 6}
	for _, chip := range detect.Chips() {
		a, err := ArchFor(chip.Arch)
		if err != nil || a.Vendor != NVIDIA {
			continue
		}
		target := Target{Warp: 32, Unit: a.Unit, Processors: chip.Units, Shared: chip.Shared}
		for _, s := range []models.Spec{models.Spec20B(), models.Spec120B(), small} {
			h := Heads{s.Heads, s.KVHeads, s.HeadDim}
			for _, m := range [][2]int{{h.Width(), s.Hidden}, {s.Hidden, s.Heads * s.HeadDim},
				{s.Vocab, s.Hidden}, {s.Experts, s.Hidden}} {
				for _, rows := range []int{1, 2, 8, 9, 13, 16, 64, 129, 256, 2048} {
					have, counts := ScratchBytes(rows, h, 1, s.Hidden, s.Vocab, false)
					for _, target.Cut = range []int{-1, 2, 0} {
						checkPieces(t, target, m[0], m[1], rows, int(have), int(counts))
					}
				}
			}
		}
	}
}

func checkPieces(t *testing.T, target Target, n, k, rows, have, counts int) {
	t.Helper()
	meet := Scratch{Partial: 256, Arrived: 256}
	product := Product{Rows: Rows{Most: rows}, N: n, K: k}
	few := target.DecodeLinear(product, 0, 0, meet)
	if blocks := int(few.Grid[0] * few.Grid[1] * few.Grid[2]); few.Kernel != "decode_linear_8" ||
		blocks > 2*target.Processors || int(few.Shared)+9<<10 > target.Shared {
		if rows <= DecodeRows {
			t.Errorf("%d by %d on %d processors by %s: %d blocks of %d bytes", n, k,
				target.Processors, few.Kernel, blocks, few.Shared)
		}
	}
	list := []Launch{few, target.PrefillLinears([]Product{product}, Rounded, meet),
		target.PrefillLinears([]Product{product}, Unrounded, meet)}
	if l, fits := target.DirectLinears([]Product{product}, meet); fits {
		if int(l.Shared) > target.Shared {
			t.Errorf("%d by %d, %d rows: %d bytes of shared memory", n, k, rows, l.Shared)
		}
		list = append(list, l)
	}
	for _, l := range list {
		tiles, sums := int(l.Grid[0]*l.Grid[1]), 4*64*tileColumns
		switch l.Kernel {
		case "decode_linear_8":
			tiles, sums = int(l.Grid[0])*divideUp(n, 64), 4*8*65
		case "prefill_linear_direct_wgmma":
			sums = 4 * 64 * directColumns
		case "prefill_linear_wgmma":
			sums *= 2
		}
		if (l.Kernel == "decode_linear_8") != (rows <= DecodeRows) {
			continue
		}
		if pieces := int(l.Grid[2]); pieces > 1 && (4*tiles > counts ||
			tiles*pieces*sums > have || divideUp(k, 64) < pieces) {
			t.Errorf("%d by %d, %d rows: %d tiles of %s in %d pieces, %d bytes", n, k, rows, tiles,
				l.Kernel, pieces, have)
		}
	}
}

// TestSteadyPieces: in steady steps k has the same pieces at every number of rows, and the scratch
// has room for them.
func TestSteadyPieces(t *testing.T) {
	small := models.Spec{Hidden: 192, Heads: 8, KVHeads: 1, HeadDim: 64, Vocab: 200, Experts: 6}
	for _, chip := range detect.Chips() {
		a, err := ArchFor(chip.Arch)
		if err != nil {
			continue
		}
		target := Target{Warp: 32, Unit: a.Unit, Processors: chip.Units, Shared: chip.Shared}
		for _, s := range []models.Spec{models.Spec20B(), models.Spec120B(), small} {
			h := Heads{s.Heads, s.KVHeads, s.HeadDim}
			for _, m := range [][2]int{{h.Width(), s.Hidden}, {s.Hidden, s.Heads * s.HeadDim},
				{s.Vocab, s.Hidden}, {s.Experts, s.Hidden}} {
				for _, terms := range []Terms{Rounded, Unrounded} {
					var pieces uint32
					for _, rows := range []int{1, 2, 8, 9, 64, 65, 129, 256, 2048, 16383} {
						p := Product{Rows: Rows{Most: rows}, N: m[0], K: m[1]}
						bytes := 4 * tileColumns * mmaTile.rows
						if terms == Rounded && a.Unit == WGMMA {
							bytes = 4 * tileColumns * wgmmaTile.rows
						}
						l := target.PrefillLinears([]Product{p}, terms, Scratch{1, 1, true})
						if rows == 1 {
							pieces = l.Grid[2]
						}
						have, counts := ScratchBytes(rows, h, 1, s.Hidden, s.Vocab, true)
						tiles := int64(l.Grid[0] * l.Grid[1])
						if l.Grid[2] != pieces || pieces > 1 && (4*tiles > counts ||
							tiles*int64(pieces)*int64(bytes) > have) {
							t.Errorf("%s, %d by %d, %d rows by %s: %v blocks, %d pieces of one, "+
								"%d and %d bytes", chip.ID, m[0], m[1], rows, l.Kernel, l.Grid,
								pieces, have, counts)
						}
					}
				}
			}
		}
	}
}

func TestPiecesOfAnH200(t *testing.T) {
	target := Target{Warp: 32, Unit: WGMMA, Processors: 132, Shared: 227 << 10}
	meet := Scratch{Partial: 256, Arrived: 256}
	list := []Product{{Rows: Rows{Most: 64}, N: 5120, K: 2880}}
	for cut, want := range map[int][2]uint32{-1: {2, 1}, 0: {3, 3}, 2: {6, 6}} {
		cutter := target
		cutter.Cut = cut
		few, _ := cutter.DirectLinears(list, meet)
		many := cutter.PrefillLinears(list, Rounded, meet)
		if few.Grid[2] != want[0] || many.Grid[2] != want[1] { // the rows of a direct one must fit
			t.Errorf("cut %d: %v and %v, not %d pieces", cut, few.Grid, many.Grid, want)
		}
	}
	for _, x := range []struct {
		n, k, rows int
		want       [3]uint32
	}{
		{5120, 2880, 8, [3]uint32{1, 80, 3}}, {2880, 4096, 8, [3]uint32{1, 45, 5}},
		{201088, 2880, 8, [3]uint32{1, 132, 1}},
		{5120, 2880, 64, [3]uint32{1, 40, 3}}, {2880, 4096, 64, [3]uint32{1, 23, 5}},
		{5120, 2880, 256, [3]uint32{2, 40, 3}}, {2880, 4096, 256, [3]uint32{2, 23, 5}},
		{5120, 2880, 2048, [3]uint32{16, 40, 1}}, {201088, 2880, 16, [3]uint32{1, 1571, 1}},
	} {
		p := Product{Rows: Rows{Most: x.rows}, N: x.n, K: x.k}
		l := target.PrefillLinears([]Product{p}, Rounded, meet)
		if x.rows <= DecodeRows {
			l = target.DecodeLinear(p, 0, 0, meet)
		}
		if l.Grid != x.want {
			t.Errorf("%d by %d, %d rows: %v, not %v", x.n, x.k, x.rows, l.Grid, x.want)
		}
	}
}
