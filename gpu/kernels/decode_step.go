package kernels

// The persistent decode step: a step's launches become records of a table that one launch runs.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// StepRows is the most rows of a step in one launch: with more, the time for the weights hides what
// launches cost.
const StepRows = 4

// A record, in words of 8 bytes; decode_step.cu has the same numbers.
const (
	recordWords     = 24
	recordArguments = 2 // where they begin
	barrierLine     = 32
)

// phaseNumbers are the kernels that a record may name, without the cache's suffix.
var phaseNumbers = map[string]int64{"embed": 0, "angles": 1, "gather": 2, "decode_qkv_1": 3,
	"decode_qkv_4": 4, "decode_attend": 5,
	"decode_linear_1": 6, "decode_linear_4": 7, "decode_route": 8, "decode_gate_up": 9,
	"decode_down": 10}

// anyBlocks are the kernels whose blocks along y, however many, divide the columns.
var anyBlocks = []string{"decode_qkv_1", "decode_qkv_4", "decode_linear_1", "decode_linear_4",
	"decode_gate_up", "decode_down"}

// Step is a whole step in one launch.
type Step struct {
	launches []Launch
	phases   []string
	suffix   string // of the kernel: the type of the cache
}

// NewStep takes the launches of a step in their order. It fails if one of them cannot be a phase.
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

// Threads is the size of a block; Shared its dynamic shared memory: the most that a phase takes.
func (s *Step) Threads() int { return threads }

func (s *Step) Shared() uint32 {
	return slices.MaxFunc(s.launches,
		func(a, b Launch) int { return cmp.Compare(a.Shared, b.Shared) }).Shared
}

// Blocks is how many of the resident blocks the largest phase can use.
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

// BarrierFan is how many blocks count their arrivals in one place. NVIDIA's L2 cache adds in one
// place as fast as all blocks of a card come. AMD's chiplets have an L2 cache each, so a group is
// what one chiplet holds.
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

// Launch is the step itself: cooperative, since all its blocks must be resident at once.
func (s *Step) Launch(t Target, table, barrier Pointer, blocks int) Launch {
	return launch(s.Kernel(), grid(blocks), block(threads), int(s.Shared()), table,
		i32(len(s.launches)), barrier, i32(t.BarrierFan(blocks)))
}
