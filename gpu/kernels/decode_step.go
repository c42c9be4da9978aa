package kernels

// The persistent decode step: the launches of a step as records of a table, run by one launch whose
// blocks meet at a barrier behind each.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// StepRows is up to how many rows a step may have to be launched whole: with more, the weights'
// time hides what launches cost.
const StepRows = 4

// A record, in words of 8 bytes; decode_step.cu has the same numbers.
const (
	recordWords     = 24
	recordArguments = 2 // where they begin
	barrierLine     = 32
)

// phaseNumbers are the kernels that a record may name, by what stands before the type of the cache.
var phaseNumbers = map[string]int64{"embed": 0, "angles": 1, "gather": 2, "decode_qkv_1": 3,
	"decode_qkv_4": 4, "decode_attend": 5,
	"decode_linear_1": 6, "decode_linear_4": 7, "decode_route": 8, "decode_gate_up": 9,
	"decode_down": 10}

// anyBlocks are those of them whose blocks along y share the columns out among themselves, however
// many they are.
var anyBlocks = []string{"decode_qkv_1", "decode_qkv_4", "decode_linear_1", "decode_linear_4",
	"decode_gate_up", "decode_down"}

// Step is a whole step in one launch.
type Step struct {
	launches []Launch
	phases   []string
	suffix   string // of the kernel: the type of the cache
}

// NewStep takes the launches of a step in their order. It fails where one of them is no phase.
func NewStep(launches []Launch) (*Step, error) {
	s := &Step{launches: launches}
	if len(launches) == 0 {
		return nil, fmt.Errorf("a step of no launches")
	}
	for _, l := range launches {
		name := l.Kernel
		for _, suffix := range []string{F32.suffix(), BF16.suffix()} {
			if !strings.Contains(name, suffix) {
				continue
			}
			if s.suffix != "" && s.suffix != suffix {
				return nil, fmt.Errorf("a step on caches of two types: %s", name)
			}
			s.suffix = suffix
			name = strings.Replace(name, suffix, "", 1)
		}
		if _, ok := phaseNumbers[name]; !ok || l.Block != block(threads) ||
			len(l.Args) > recordWords-recordArguments {
			return nil, fmt.Errorf("%s is no phase of a step", l.Kernel)
		}
		s.phases = append(s.phases, name)
	}
	if s.suffix == "" {
		s.suffix = F32.suffix()
	}
	return s, nil
}

// Kernel is what runs the step.
func (s *Step) Kernel() string { return "decode_step" + s.suffix }

// Threads is a block's; Shared its dynamic shared memory: the most that a phase takes.
func (s *Step) Threads() int { return threads }

func (s *Step) Shared() uint32 {
	return slices.MaxFunc(s.launches,
		func(a, b Launch) int { return cmp.Compare(a.Shared, b.Shared) }).Shared
}

// Blocks is how many blocks a step is launched with where so many are resident at once: no more
// than any phase has a use for.
func (s *Step) Blocks(resident int) int {
	most := 1
	for _, l := range s.launches {
		most = max(most, int(l.Grid[0]*l.Grid[1]*l.Grid[2]))
	}
	return min(resident, most)
}

// Table is the records, for a launch of so many blocks.
func (s *Step) Table(blocks int) []byte {
	table := make([]byte, 0, 8*recordWords*len(s.launches))
	for i, l := range s.launches {
		grid := l.Grid
		if slices.Contains(anyBlocks, s.phases[i]) {
			grid[1] = min(grid[1], max(1, uint32(blocks)/(grid[0]*grid[2])))
		}
		record := make([]uint64, recordWords)
		record[0] = uint64(phaseNumbers[s.phases[i]]) | uint64(grid[0])<<32
		record[1] = uint64(grid[1]) | uint64(grid[2])<<32
		copy(record[recordArguments:], l.Words())
		for _, w := range record {
			table = binary.NativeEndian.AppendUint64(table, w)
		}
	}
	return table
}

// BarrierFan is how many blocks count their arrivals in one place. NVIDIA's second cache adds in
// one place as fast as all blocks of a card come; AMD's chiplets have one each, and a group is what
// one of them holds.
func (t Target) BarrierFan(blocks int) int {
	if t.Warp == 64 {
		return min(blocks, 38)
	}
	return blocks
}

// BarrierBytes is the state of the barrier of so many blocks; 0 before the first step.
func (t Target) BarrierBytes(blocks int) int64 {
	return int64(4 * barrierLine * (2 + divideUp(blocks, t.BarrierFan(blocks))))
}

// Launch is the step itself. All its blocks must be resident at once: a cooperative launch, which
// is refused where they cannot be.
func (s *Step) Launch(t Target, table, barrier Pointer, blocks int) Launch {
	return launch(s.Kernel(), grid(blocks), block(threads), int(s.Shared()), table,
		i32(len(s.launches)), barrier, i32(t.BarrierFan(blocks)))
}
