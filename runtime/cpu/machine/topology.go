package machine

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The physical cores that this process may use, with the memory node and the speed of each, as
// Linux reports them in /sys/devices/system. Two hardware threads of one core share its multipliers
// and its path to memory, so a second thread there waits for the first: the pool has one thread for
// each core. What must stay true: if something is missing or does not parse, less is known, but
// there is no error.

// A core, with those of its hardware threads that this process may use.
type core struct {
	cpus  []int
	node  int // of memory; 0 if the system names none
	speed int // thousandths of the fastest kind's; cores of one speed are of one kind
}

// slowest is the least speed of a core that is used. Threads take the next free task, so a slower
// core helps, but one below a third makes the others wait longer than it helps
// (kerneltest/schedule_test.cpp computes both).
const slowest = 1000 / 3

// topology lists the cores in the order of their first hardware threads; empty if unknown.
type topology []core

// readTopology reads the tree at root (/sys/devices/system) for the hardware threads in allowed.
func readTopology(root string, allowed []int) topology {
	nodeOf := map[int]int{}
	// the pattern is well formed
	nodes, _ := filepath.Glob(filepath.Join(root, "node", "node[0-9]*"))
	for _, dir := range nodes {
		node, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		for _, cpu := range cpuList(readLine(filepath.Join(dir, "cpulist"))) {
			nodeOf[cpu] = node
		}
	}
	var t topology
	speed := speeds(root, allowed)
	index := map[string]int{} // by the list of a core's hardware threads
	for _, cpu := range slices.Sorted(slices.Values(allowed)) {
		siblings := readLine(filepath.Join(root, "cpu", "cpu"+strconv.Itoa(cpu), "topology",
			"thread_siblings_list"))
		if siblings == "" {
			return nil // a partial list would have too few cores
		}
		i, seen := index[siblings]
		if !seen {
			i = len(t)
			index[siblings] = i
			t = append(t, core{node: nodeOf[cpu], speed: speed[cpu]})
		}
		t[i].cpus = append(t[i].cpus, cpu)
	}
	return slices.DeleteFunc(t, func(c core) bool { return c.speed < slowest })
}

// speeds gives each processor's speed in thousandths of the fastest's. On ARM it is the capacity
// that Linux reports. On Intel, Linux lists the efficiency cores, which do about 0.7 of the others'
// work in a cycle; their highest clock rate counts too, which is lower still on the low-power
// island. If Linux reports nothing, all count as equally fast.
func speeds(root string, allowed []int) map[int]int {
	number := func(cpu int, file string) int {
		n, _ := strconv.Atoi(readLine(filepath.Join(root, "cpu", "cpu"+strconv.Itoa(cpu), file)))
		return max(n, 0)
	}
	efficient := cpuList(readLine(filepath.Join(root, "..", "cpu_atom", "cpus")))
	clock := 0
	for _, cpu := range allowed {
		clock = max(clock, number(cpu, "cpufreq/cpuinfo_max_freq"))
	}
	byCPU, fastest := map[int]int{}, 0
	for _, cpu := range allowed {
		byCPU[cpu] = number(cpu, "cpu_capacity")
		if byCPU[cpu] == 0 {
			byCPU[cpu] = 1000
			if slices.Contains(efficient, cpu) && clock > 0 {
				byCPU[cpu] = 700 * number(cpu, "cpufreq/cpuinfo_max_freq") / clock
			} else if slices.Contains(efficient, cpu) {
				byCPU[cpu] = 500
			}
		}
		fastest = max(fastest, byCPU[cpu])
	}
	for cpu, speed := range byCPU {
		byCPU[cpu] = 1000 * speed / max(fastest, 1)
	}
	return byCPU
}

// longestCPUList bounds what a list may name: a damaged one must not fill memory.
const longestCPUList = 1 << 16

// cpuList reads the kernel's form of a set, as 0-3,8,10-11; nil if it does not parse.
func cpuList(text string) (list []int) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil || a < 0 {
			return nil
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(last); err != nil {
				return nil
			}
		}
		if b < a || b-a+len(list) >= longestCPUList {
			return nil
		}
		for ; a <= b; a++ {
			list = append(list, a)
		}
	}
	return list
}

// Nodes are this machine's memory nodes, ascending; none if unknown.
func Nodes() []int { return machine().nodes() }

// Homes says for each of so many threads which hardware threads of this machine it may run on; nil
// to leave it to the system.
func Homes(threads int) [][]int { return machine().homes(threads) }

// nodes are the memory nodes of the cores, ascending.
func (t topology) nodes() (list []int) {
	for _, c := range t {
		list = append(list, c.node)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// homes says for each thread which hardware threads it may run on: those of one kind of core at one
// node. Fast cores are first, and among equally fast ones the nodes take turns, so that even a few
// threads use the paths to all memory nodes. Nil if it gains nothing: one node and one kind, or
// more threads than cores.
func (t topology) homes(threads int) [][]int {
	type place struct{ slowness, node int }
	cpus, room := map[place][]int{}, map[place]int{}
	for _, c := range t {
		p := place{-c.speed, c.node}
		cpus[p] = append(cpus[p], c.cpus...)
		room[p]++
	}
	if len(room) < 2 || threads > len(t) {
		return nil
	}
	places := slices.SortedFunc(maps.Keys(room), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.slowness, b.slowness), cmp.Compare(a.node, b.node))
	})
	var homes [][]int
	for len(homes) < threads {
		kind := places[0].slowness
		for _, p := range places {
			if p.slowness == kind && len(homes) < threads {
				homes = append(homes, cpus[p])
				room[p]--
			}
		}
		places = slices.DeleteFunc(places, func(p place) bool { return room[p] == 0 })
	}
	return homes
}
