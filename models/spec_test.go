package models

// The sizes of the released models, to the byte.

import "testing"

func TestReleasedSizes(t *testing.T) {
	for _, test := range []struct {
		spec    Spec
		tensors int
		bytes   int64
	}{
		{Spec20B(), 459, 13_761_264_768},
		{Spec120B(), 687, 65_248_815_744},
	} {
		if n := len(test.spec.Tensors()); n != test.tensors {
			t.Errorf("%s has %d tensors, want %d", test.spec.Name, n, test.tensors)
		}
		if n := test.spec.WeightBytes(); n != test.bytes {
			t.Errorf("%s has %d bytes of weights, want %d", test.spec.Name, n, test.bytes)
		}
	}
}
