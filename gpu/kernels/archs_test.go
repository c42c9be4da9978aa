package kernels

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
)

// TestImageOfEachCard: what each generation of cards is given.
func TestImageOfEachCard(t *testing.T) {
	for arch, want := range map[string]string{
		"sm_80": "sm_80", "sm_86": "sm_80", "sm_87": "sm_80", "sm_89": "sm_80", "sm_90": "sm_90a",
		"sm_100": "sm_100a", "sm_103": "sm_103a",
		"sm_110": "sm_80", "sm_120": "sm_120a", "sm_121": "sm_121a",
		"sm_122": "sm_120", "sm_130": "sm_120",
		"gfx90a": "gfx90a", "gfx942": "gfx942", "gfx950": "gfx950", "gfx1100": "gfx1100",
		"gfx1101": "gfx1101", "gfx1151": "gfx1151", "gfx1200": "gfx1200", "gfx1201": "gfx1201",
	} {
		a, err := ArchFor(arch)
		if err != nil || a.Name != want {
			t.Errorf("%s takes %q, %v, not %s", arch, a.Name, err, want)
			continue
		}
		if data := image(t, a); !bytes.HasPrefix(data, []byte("\x7fELF")) &&
			!bytes.Contains(data, []byte(".target "+want)) {
			t.Errorf("%s: %d bytes", arch, len(data))
		}
	}
}

// TestTextOfEachCard: the text for a driver without machine code, or that refused it.
func TestTextOfEachCard(t *testing.T) {
	for arch, want := range map[string]string{"sm_75": "", "sm_80": "sm_80", "sm_90": "sm_80",
		"sm_103": "sm_80", "sm_110": "sm_80", "sm_120": "sm_120", "sm_121": "sm_120",
		"sm_130": "sm_120", "gfx942": "", "": ""} {
		a, ok := TextFor(arch)
		if a.Name != want || ok != (want != "") {
			t.Errorf("%q takes the text for %q, not %q", arch, a.Name, want)
			continue
		}
		if ok && !bytes.Contains(image(t, a), []byte("\n.target "+want+"\n")) {
			t.Errorf("the text for %s is for another", arch)
		}
	}
	for _, a := range Archs {
		if _, err := a.Read(assets.Kernels); (err == nil) != (a.File() != "") {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

// TestImageRefusals: one sentence each.
func TestImageRefusals(t *testing.T) {
	for arch, want := range map[string]string{"sm_75": "too old: 8.0", "sm_70": "7.0 is too old",
		"gfx1030": "no kernels for gfx1030", "": "cannot be told"} {
		if _, err := ArchFor(arch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q", arch, err, want)
		}
	}
}
