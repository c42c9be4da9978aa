package kernels

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A disassembly of AMD's as steps: what each instruction touches, asks for and waits for. What is
// not known here is an error, never nothing.

// The counters that are waited for. GFX9 counts stores as loads, only GFX12 has one of its own for
// scalar loads.
const (
	countsLoads uint8 = iota
	countsStores
	countsShared
	countsScalars
)

var (
	heading     = regexp.MustCompile(`^[0-9a-f]+ <(\w+)>:`)
	instruction = regexp.MustCompile(`^\t(\S+) *(.*?) *// ([0-9A-F]+): ([0-9A-F]{8})`)
	register    = regexp.MustCompile(`\b(?:([vsa])(\d+)(?:\.[lh])?\b|([vsa])\[(\d+):(\d+)\]|vcc|m0)`)
	counted     = regexp.MustCompile(`\b(\w+cnt)\((\d+)\)`)
)

// generation is 9, 11 or 12 of an architecture's name.
func generation(a Arch) int {
	switch {
	case strings.HasPrefix(a.Name, "gfx12"):
		return 12
	case strings.HasPrefix(a.Name, "gfx11"):
		return 11
	}
	return 9
}

// flows are the kernels of a disassembly by name.
func flows(a Arch, text string) (map[string]*flow, error) {
	all := map[string]*flow{}
	var f *flow
	for line := range strings.Lines(text) {
		if m := heading.FindStringSubmatch(line); m != nil {
			f = &flow{writesBack: a.Name == "gfx942" || a.Name == "gfx950"}
			all[m[1]] = f
		} else if m := instruction.FindStringSubmatch(line); m != nil && f != nil {
			s := step{text: strings.TrimSpace(m[1] + " " + m[2]), op: m[1], kind: kinds,
				brings: none}
			s.address, _ = strconv.ParseUint(m[3], 16, 64)
			code, _ := strconv.ParseUint(m[4], 16, 32)
			s.code = uint32(code)
			if err := s.read(generation(a), m[2]); err != nil {
				return nil, fmt.Errorf("%s: %w", s.text, err)
			}
			f.steps = append(f.steps, s)
		} else if strings.HasPrefix(line, "\t") {
			return nil, fmt.Errorf("%q is no instruction of a kernel", line)
		}
	}
	for name, f := range all {
		if err := f.connect(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// registers of the operands.
func registers(text string) (all []span) {
	const vcc, m0 = 106, 124
	for _, m := range register.FindAllStringSubmatch(text, -1) {
		file, from, to := m[1]+m[3], m[2]+m[4], m[2]+m[5]
		low, _ := strconv.Atoi(from)
		high, _ := strconv.Atoi(to)
		switch m[0] {
		case "vcc":
			file, low, high = "s", vcc, vcc+1
		case "m0":
			file, low, high = "s", m0, m0
		}
		base := map[string]int{"v": 0, "a": 1000, "s": 2000}[file]
		all = append(all, span{base + low, base + high})
	}
	return all
}

func begins(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(text, w) })
}

// read fills in what an instruction does.
func (s *step) read(generation int, args string) error {
	s.touches = registers(args)
	loading := func(kind, counter uint8) error {
		s.kind, s.counter = kind, counter
		if len(s.touches) == 0 {
			return errors.New("it loads into no register")
		}
		s.brings = s.touches[0]
		return nil
	}
	storeCounter := countsStores
	if generation == 9 {
		storeCounter = countsLoads
	}
	// For other blocks: by its scope, or where the ISA has none by the bits that LLVM sets.
	device := strings.Contains(args, "scope:SCOPE_DEV") || strings.Contains(args, " sc1") ||
		strings.Contains(args, " glc") && !strings.Contains(args, " slc")
	switch op := s.op; {
	case begins(op, "global_load_"):
		s.device = device
		return loading(loads, countsLoads)
	case begins(op, "global_store_"):
		s.kind, s.counter, s.device = stores, storeCounter, device
	case begins(op, "global_atomic_"):
		s.device, s.atomic = true, true
		if begins(args, "v") && (strings.Contains(args, "TH_ATOMIC_RETURN") ||
			strings.Contains(args, " sc0") || strings.Contains(args, " glc")) {
			return loading(loads, countsLoads)
		}
		s.kind, s.counter = stores, storeCounter
	case op == "global_inv" && args == "scope:SCOPE_SE": // of the work group alone
	case op == "global_inv" && args == "scope:SCOPE_DEV",
		op == "buffer_wbinvl1_vol", op == "buffer_inv" && args == "sc1":
		s.throws = staleFar | staleNear
	case op == "buffer_gl1_inv":
		s.throws = staleFar
	case op == "buffer_gl0_inv":
		s.throws = staleNear
	case op == "buffer_wbl2" && args == "sc1":
		s.kind, s.counter = writeBacks, countsLoads
	case begins(op, "ds_bpermute_"):
		return loading(shuffles, countsShared)
	case begins(op, "ds_read", "ds_load") || begins(op, "ds_") && strings.Contains(op, "_rtn_"):
		return loading(shared, countsShared)
	case begins(op, "ds_write", "ds_store", "ds_add_u32"):
		s.kind, s.counter = shared, countsShared
	case begins(op, "s_load_") && generation == 12:
		return loading(scalars, countsScalars)
	case begins(op, "s_load_"):
		return loading(scalars, countsShared)
	case begins(op, "s_wait") && op != "s_wait_alu" && op != "s_waitcnt_depctr":
		return s.readWait(generation, args)
	case op == "s_barrier" || op == "s_barrier_signal":
		s.barrier = true
	case op == "s_endpgm":
		s.ends = true
	case op == "s_branch" || begins(op, "s_cbranch_scc", "s_cbranch_exec"):
		s.branches, s.jumps = true, op == "s_branch"
	case begins(op, "s_cbranch_vcc"):
		s.branches, s.touches = true, registers("vcc")
	case begins(op, "flat_", "scratch_", "buffer_", "tbuffer_", "image_", "global_", "ds_", "exp",
		"lds_", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_rfe", "s_store", "s_buffer",
		"s_atomic", "s_scratch", "s_dcache", "s_mem", "s_sendmsg_rtn", "s_trap", "s_get_barrier",
		"s_prefetch"), !begins(op, "s_", "v_"):
		return errors.New("this test does not know it")
	}
	return nil
}

// readWait fills in the operations waited for.
func (s *step) readWait(generation int, args string) error {
	add := func(counter uint8, n uint64) { s.waits = append(s.waits, wait{counter, uint8(n)}) }
	if s.op == "s_waitcnt" && generation < 12 {
		for _, m := range counted.FindAllStringSubmatch(args, -1) {
			n, err := strconv.ParseUint(m[2], 10, 8)
			counter, known := map[string]uint8{"vmcnt": countsLoads, "lgkmcnt": countsShared}[m[1]]
			if err != nil || !known {
				return errors.New("this test does not know what it waits for")
			}
			add(counter, n)
		}
		if len(s.waits) == 0 {
			return errors.New("it waits for nothing")
		}
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(args, "null, "), 0, 16)
	if err != nil {
		return err
	}
	switch {
	case s.op == "s_waitcnt_vscnt" && generation == 11, s.op == "s_wait_storecnt":
		add(countsStores, n)
	case s.op == "s_wait_loadcnt":
		add(countsLoads, n)
	case s.op == "s_wait_dscnt":
		add(countsShared, n)
	case s.op == "s_wait_kmcnt":
		add(countsScalars, n)
	case s.op == "s_wait_loadcnt_dscnt":
		add(countsLoads, n>>8)
		add(countsShared, n&0x3f)
	case s.op == "s_wait_storecnt_dscnt":
		add(countsStores, n>>8)
		add(countsShared, n&0x3f)
	default:
		return errors.New("this test does not know what it waits for")
	}
	return nil
}

// connect finds the blocks of a kernel and where its branches go.
func (f *flow) connect() error {
	begin := make([]bool, len(f.steps)+1)
	begin[0], begin[len(f.steps)] = true, true
	for i := range f.steps {
		s := &f.steps[i]
		s.target = -1
		if s.branches {
			// The distance in words is the lower half of the code.
			to := s.address + 4 + uint64(int64(int16(s.code))*4)
			at, ok := slices.BinarySearchFunc(f.steps, to, func(s step, to uint64) int {
				return cmp.Compare(s.address, to)
			})
			if !ok {
				return fmt.Errorf("%s at %x leaves the kernel", s.text, s.address)
			}
			s.target, begin[at] = at, true
		}
		if s.branches || s.ends {
			begin[i+1] = true
		}
	}
	f.block = make([]int, len(f.steps))
	for i, b := range begin {
		if b {
			f.starts = append(f.starts, i)
		}
		if i < len(f.steps) {
			f.block[i] = len(f.starts) - 1
		}
	}
	for i := range f.steps {
		s := &f.steps[i]
		s.asks = s.device && (s.atomic || s.kind == loads && f.repeated(f.block[i]))
	}
	return nil
}

// repeated: a block comes back to itself with no barrier in between.
func (f *flow) repeated(block int) bool {
	seen := map[int]bool{}
	for work := f.next(block); len(work) > 0; {
		b := work[0]
		work = work[1:]
		if b == block {
			return true
		}
		if !seen[b] && !slices.ContainsFunc(f.steps[f.starts[b]:f.starts[b+1]],
			func(s step) bool { return s.barrier }) {
			work = append(work, f.next(b)...)
		}
		seen[b] = true
	}
	return false
}
