package kernels

import (
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
)

// What each generation of cards is given: its own, an earlier one of the same major number, or
// none.
func TestCubinOfEachCard(t *testing.T) {
	for arch, want := range map[string]string{
		"sm_80": "sm_80", "sm_86": "sm_86", "sm_88": "sm_86", "sm_89": "sm_89", "sm_90": "sm_90a",
		"sm_100": "sm_100a", "sm_103": "sm_103a", "sm_120": "sm_120a", "sm_121": "sm_121a",
		"sm_75": "", "sm_87": "", "sm_101": "", "sm_102": "", "sm_110": "", "sm_122": "",
		"sm_130": "", "gfx942": "", "": "", "sm_": "",
	} {
		if c, ok := CubinFor(arch); c.Name != want || ok != (want != "") {
			t.Errorf("%q takes %q, not %q", arch, c.Name, want)
		}
	}
}

// A cubin has the kernels that a launch on its architecture may name, and is cut off nowhere.
func TestCubinsHaveTheKernels(t *testing.T) {
	for _, c := range Cubins {
		i := slices.IndexFunc(Archs, func(a Arch) bool { return a.Name == c.From })
		if i < 0 {
			t.Fatalf("%s is made from %s, which is not built", c.Name, c.From)
		}
		want := kernelsOf(t, Archs[i].Unit)
		cubin, err := c.Read(assets.Kernels)
		if err != nil {
			t.Fatalf("%s: %v: run go generate ./gpu/...", c.Name, err)
		}
		have, err := Names(cubin)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s has %v\nthe sources %v", c.Name, have, want)
		}
		for _, n := range []int{64, len(cubin) / 2} {
			if _, err := Names(cubin[:n]); err == nil {
				t.Errorf("the first %d bytes of %s have kernels", n, c.Name)
			}
		}
	}
}

// kernelsOf are the names of the sources' kernels that are built for a matrix unit: all, but the
// products of other units.
func kernelsOf(t *testing.T, unit Unit) (names []string) {
	signatures, err := readSignatures(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signatures {
		mx := strings.HasSuffix(s.Name, "_mx") && s.Name != "quantize_mx"
		if wgmma := strings.Contains(s.Name, "_wgmma"); mx && unit != MX || wgmma && unit != WGMMA {
			continue
		}
		names = append(names, s.Name)
	}
	return names
}

// Nothing but a cubin is one.
func TestCubinVersionOfOtherFiles(t *testing.T) {
	for _, a := range Archs {
		if a.File() == "" {
			continue
		}
		if v, ok := CubinVersion(image(t, a)); ok {
			t.Errorf("%s is a cubin for %d", a.File(), v)
		}
	}
	if _, ok := CubinVersion([]byte("\x7fELF")); ok {
		t.Error("four bytes are a cubin")
	}
}
