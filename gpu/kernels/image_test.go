package kernels

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/assets"
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
