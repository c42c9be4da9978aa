// A hash table that finds the number of a frame in the list of frames.
//
// A mask spends most of its time looking frames up, so this is not a Go map. What must stay true:
// frame 0 is the ended stack and is never looked up; frames are numbered in the order of the list.

package grammar

// frameTable holds frame numbers in slots that the frames' hashes choose; 0: an empty slot.
type frameTable struct {
	slots []int32 // their number is a power of two; at least half are empty
	held  int
}

func (f frame) hash() uint64 {
	const odd = 0x9E3779B97F4A7C15 // the golden ratio in 64 bits
	h := uint64(uint32(f.of))<<32 | uint64(uint32(f.parent))
	h = (h ^ h>>29) * odd
	h ^= uint64(uint32(f.a))<<32 | uint64(uint32(f.b)) ^ uint64(f.kind)<<56
	h = (h ^ h>>32) * odd
	return h ^ h>>29
}

// find is the number of a frame, 0 if it has none.
func (t *frameTable) find(frames []frame, f frame) int32 {
	if len(t.slots) == 0 {
		return 0
	}
	for at := f.hash(); ; at++ {
		id := t.slots[at&uint64(len(t.slots)-1)]
		if id == 0 || frames[id] == f {
			return id
		}
	}
}

// add numbers the last of the frames, which is new.
func (t *frameTable) add(frames []frame) {
	if t.held++; 2*t.held > len(t.slots) {
		t.slots = make([]int32, max(64, 2*len(t.slots)))
		for id := 1; id < len(frames); id++ {
			t.place(frames, int32(id))
		}
		return
	}
	t.place(frames, int32(len(frames)-1))
}

func (t *frameTable) place(frames []frame, id int32) {
	at := frames[id].hash()
	for t.slots[at&uint64(len(t.slots)-1)] != 0 {
		at++
	}
	t.slots[at&uint64(len(t.slots)-1)] = id
}
