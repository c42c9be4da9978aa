package cpu

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Which physical cores this process may use, and near which memory each of them is, as Linux tells
// in /sys/devices/system. Two hardware threads of one core share its multipliers and its path to
// memory, so a second thread there waits for the first: threads are one a core. What must stay
// true: whatever is missing or does not parse leaves less knowledge, never an error.

// A core has the hardware threads of it that this process may use.
type core struct {
	cpus []int
	node int // of memory; 0 where the system names none
}

// topology lists the cores in the order of their first hardware threads; empty where nothing is
// known.
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
	at := map[string]int{} // by the list of a core's hardware threads
	for _, cpu := range slices.Sorted(slices.Values(allowed)) {
		siblings := readLine(filepath.Join(root, "cpu", "cpu"+strconv.Itoa(cpu), "topology",
			"thread_siblings_list"))
		if siblings == "" {
			return nil // half a picture would name too few cores
		}
		i, seen := at[siblings]
		if !seen {
			i = len(t)
			at[siblings] = i
			t = append(t, core{node: nodeOf[cpu]})
		}
		t[i].cpus = append(t[i].cpus, cpu)
	}
	return t
}

// longestCPUList bounds what a list may name: a damaged one must not fill memory.
const longestCPUList = 1 << 16

// cpuList reads the kernel's form of a set, as 0-3,8,10-11; nothing where it does not parse.
func cpuList(text string) (list []int) {
	for _, part := range strings.Split(text, ",") {
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

// nodes are the memories that the cores are near to, ascending.
func (t topology) nodes() (list []int) {
	for _, c := range t {
		list = append(list, c.node)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// homes says for each of some threads which hardware threads it may run on: those of one node, the
// nodes taking turns, so that few threads use the paths to all memories. Nil where there is nothing
// to gain: one node, or more threads than cores.
func (t topology) homes(threads int) [][]int {
	nodes := t.nodes()
	if len(nodes) < 2 || threads > len(t) {
		return nil
	}
	cpus, room := map[int][]int{}, map[int]int{}
	for _, c := range t {
		cpus[c.node] = append(cpus[c.node], c.cpus...)
		room[c.node]++
	}
	var homes [][]int
	for i := 0; len(homes) < threads; i++ {
		node := nodes[i%len(nodes)]
		if room[node] == 0 {
			continue // all its cores have a thread, another node has more
		}
		room[node]--
		homes = append(homes, cpus[node])
	}
	return homes
}
