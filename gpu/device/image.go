package device

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// Which of the compiled kernels a card runs.

// Image is the compiled kernels for an architecture: its own, or those of the nearest earlier one
// that runs there.
func Image(arch string) ([]byte, error) {
	a, err := choose(arch)
	if err != nil {
		return nil, err
	}
	image, err := assets.Kernels.ReadFile("kernels/" + a.File())
	if err != nil {
		return nil, fmt.Errorf("the kernels for %s: %w", a.Name, err)
	}
	return image, nil
}

// Artefact names the compiled kernels that a card of an architecture runs: "sm_90a" for "sm_90",
// "sm_80" for "sm_86".
func Artefact(arch string) (string, error) {
	a, err := choose(arch)
	return a.Name, err
}

// choose finds the artefact. PTX for an architecture without a suffix is compiled by the driver for
// any later card; that for an "a" architecture, and every code object of AMD's, runs on its own
// only.
func choose(arch string) (best kernels.Arch, err error) {
	card, nvidia := capability(arch)
	if nvidia && card < oldest() {
		return best, fmt.Errorf("its compute capability %s is too old: %d.%d or newer is needed",
			dotted(card), oldest()/10, oldest()%10)
	}
	newest := -1
	for _, a := range kernels.Archs {
		version, own := capability(a.Name)
		switch {
		case a.Vendor == kernels.AMD && a.Name == arch, nvidia && own && a.Name == "sm_"+
			strconv.Itoa(card)+"a":
			return a, nil
		case nvidia && own && !strings.HasSuffix(a.Name, "a") && version <= card &&
			version > newest:
			best, newest = a, version
		}
	}
	if newest < 0 {
		if arch == "" {
			return best, fmt.Errorf("its architecture cannot be told")
		}
		return best, fmt.Errorf("this program has no kernels for %s", arch)
	}
	return best, nil
}

// capability is the number of an NVIDIA architecture: 90 of "sm_90" and of "sm_90a".
func capability(arch string) (int, bool) {
	digits, ok := strings.CutPrefix(arch, "sm_")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(digits, "a"))
	return n, err == nil
}

// oldest is the capability that the oldest NVIDIA artefact needs.
func oldest() int {
	least := 0
	for _, a := range kernels.Archs {
		if n, ok := capability(a.Name); ok && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

func dotted(capability int) string { return fmt.Sprintf("%d.%d", capability/10, capability%10) }
