package checkpoint

import (
	"math"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestSynthetic: every tensor of the Spec exists with its size, scales are plausible, and the same
// seed gives the same weights.
func TestSynthetic(t *testing.T) {
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Vocab, s.Experts = 2, 64, 32, 128, 4
	a := hosttest.Must(Synthetic(s, 7))(t)
	defer a.Close()
	b := hosttest.Must(Synthetic(s, 7))(t)
	defer b.Close()
	var sum int64
	for _, want := range s.Tensors() {
		x, y := hosttest.Must(a.Tensor(want.Name))(t), hosttest.Must(b.Tensor(want.Name))(t)
		if int64(len(x.Data)) != want.Bytes() || string(x.Data) != string(y.Data) {
			t.Errorf("%s: %d bytes of %d, equal for one seed: %v", want.Name, len(x.Data),
				want.Bytes(), string(x.Data) == string(y.Data))
		}
		sum += want.Bytes()
		if want.DType != models.BF16 {
			continue
		}
		for i := 0; i < len(x.Data); i += 2 {
			v := math.Float32frombits(uint32(x.Data[i])<<16 | uint32(x.Data[i+1])<<24)
			if math.IsNaN(float64(v)) || math.Abs(float64(v)) > 2 {
				t.Fatalf("%s holds %v", want.Name, v)
			}
		}
	}
	if a.Bytes() != sum {
		t.Errorf("%d bytes in all, want %d", a.Bytes(), sum)
	}
	s.Layers = 3
	c := hosttest.Must(SyntheticUploaded(s, 7))(t)
	defer c.Close()
	apart := map[*byte]bool{}
	sum = 0
	for _, want := range s.Tensors() {
		x := hosttest.Must(c.Tensor(want.Name))(t)
		if x.Name != want.Name || int64(len(x.Data)) != want.Bytes() {
			t.Errorf("%s: %d bytes of %d", x.Name, len(x.Data), want.Bytes())
		}
		if !apart[&x.Data[0]] {
			apart[&x.Data[0]] = true
			sum += want.Bytes()
		}
	}
	if sum != SyntheticBytes(s) || c.Bytes() != s.WeightBytes() || 2*sum > 3*a.Bytes() {
		t.Errorf("%d bytes in memory of %d, want %d", sum, c.Bytes(), SyntheticBytes(s))
	}
	s.Hidden = 33
	if _, err := Synthetic(s, 7); err == nil {
		t.Error("a width of 33 was accepted")
	}
}
