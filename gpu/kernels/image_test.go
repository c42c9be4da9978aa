package kernels

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// image is the shipped file of an architecture: its code object, its text or its cubin.
func image(t *testing.T, a Arch) []byte {
	t.Helper()
	read := a.Read
	if i := slices.IndexFunc(Cubins, func(c Cubin) bool { return c.Name == a.Name }); i >= 0 &&
		!a.HasText() {
		read = Cubins[i].Read
	}
	data, err := read(assets.Kernels)
	if err != nil {
		t.Fatalf("%v: run go generate ./gpu/...", err)
	}
	return data
}

// What a program launches on an architecture is in the image of that architecture.
func TestImagesHaveWhatTheirTargetsLaunch(t *testing.T) {
	for _, a := range Archs {
		have, err := Names(image(t, a))
		if err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
		for _, l := range launchesOn(a.target()) {
			if !slices.Contains(have, l.Kernel) {
				t.Errorf("%s has no %s", a.Name, l.Kernel)
			}
		}
	}
}

// Kernels whose launches overlap wait for the grids before them, in front of all that they write;
// in PTX it can be read without tools.
func TestKernelsAwaitGrids(t *testing.T) {
	writes := regexp.MustCompile(`\s(st\.global|atom\.global|red\.global|cp\.async\.cg)`)
	for _, a := range Archs {
		if !a.HasText() {
			continue
		}
		data := image(t, a)
		for _, name := range hosttest.Must(Names(data))(t) {
			before, after, waits := bytes.Cut(hosttest.Must(Only(data, name))(t),
				[]byte("griddepcontrol.wait;"))
			if waits != a.Overlaps() || bytes.Contains(after, []byte("griddepcontrol.wait;")) ||
				waits && writes.Match(before) {
				t.Errorf("%s: %s waits %v, and first %q", a.Name, name, waits,
					writes.Find(before))
			}
		}
	}
}

// The same of cubins, in the machine's own words.
func TestCubinsAwaitGrids(t *testing.T) {
	drivertest.Long(t)
	for _, a := range Archs {
		if a.Vendor == AMD || a.HasText() {
			continue
		}
		names := hosttest.Must(Names(image(t, a)))(t)
		for name, text := range machine(t, a, names) {
			before, _, waits := strings.Cut(text, "ACQBULK")
			if !waits || !strings.Contains(text, "PREEXIT") || strings.Contains(before, "STG") {
				t.Errorf("%s: %s does not wait", a.Name, name)
			}
		}
	}
}

func TestOnlyKeepsWhatIsAskedFor(t *testing.T) {
	ptx := image(t, Archs[0])
	all := hosttest.Must(Names(ptx))(t)
	want := []string{all[0], "sample", all[len(all)-1]}
	part := hosttest.Must(Only(ptx, want...))(t)
	have, err := Names(part)
	slices.Sort(want)
	slices.Sort(have)
	if err != nil || !slices.Equal(have, want) {
		t.Errorf("asked for %v: %v, %v", want, have, err)
	}
	whole, err := Only(ptx, all...)
	if err != nil || !bytes.Equal(whole, ptx) {
		t.Errorf("all kernels are not the whole: %v", err)
	}
	header, _, _ := strings.Cut(string(ptx), ".address_size")
	if !strings.HasPrefix(string(part), header) {
		t.Error("the part does not begin as the whole does")
	}
	if _, err := Only(ptx, "sample", "none"); err == nil ||
		!strings.Contains(err.Error(), "no kernel none") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	if _, err := Only(ptx[:len(ptx)/2]); err == nil {
		t.Error("half a file was taken")
	}
}
