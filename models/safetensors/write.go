package safetensors

// Making the head of a file whose tensors the caller writes to their places.

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
)

// padding divides a head's length, so that the first tensor is aligned for any element type.
const padding = 64

// Layout gives the head of a file that holds the tensors in their order (Name, DType and Shape are
// read) and where each of them lies in it.
func Layout(tensors []Info, metadata map[string]string) (head []byte, placed []Info, err error) {
	type object struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	text := []byte("{")
	add := func(name string, value any) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		key, e1 := json.Marshal(name)
		body, e2 := json.Marshal(value)
		if e1 != nil || e2 != nil {
			err = fmt.Errorf("the head of a safetensors file: %w", e2)
		}
		text = append(append(append(text, key...), ':'), body...)
	}
	if metadata != nil {
		add("__metadata__", metadata)
	}
	at := int64(0)
	placed = slices.Clone(tensors)
	for i := range placed {
		t := &placed[i]
		size := int64(t.DType.Bits() / 8)
		for _, d := range t.Shape {
			size *= int64(d)
		}
		t.Begin, t.End = at, at+size
		add(t.Name, object{t.DType.String(), append([]int{}, t.Shape...), [2]int64{t.Begin, t.End}})
		at = t.End
	}
	text = append(text, '}')
	for (len(text)+lengthBytes)%padding != 0 {
		text = append(text, ' ')
	}
	head = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for i := range placed {
		placed[i].Begin += int64(len(head))
		placed[i].End += int64(len(head))
	}
	return head, placed, err
}
