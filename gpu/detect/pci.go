package detect

// The PCI bus: which display controllers and accelerators are plugged in, before any driver is
// asked. Class 0x03xxxx is a display controller: 0300 on consumer cards, 0302 on data-centre ones,
// 0380 on some accelerators; AMD's Instinct cards show 1200. Their audio functions are not GPUs.

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

type pciCard struct {
	bdf, id, driver string // "0000:1b:00.0", "10de:2335", "nvidia"
}

// pciCards lists the cards of NVIDIA and AMD in the order of their addresses.
func pciCards(files fs.FS) []pciCard {
	const root = "sys/bus/pci/devices"
	var cards []pciCard
	for _, name := range namesIn(files, root) {
		dir := path.Join(root, name)
		vendor, class := readText(files, dir+"/vendor"), readText(files, dir+"/class")
		if vendor != "0x10de" && vendor != "0x1002" || !strings.HasPrefix(class, "0x03") &&
			!strings.HasPrefix(class, "0x12") {
			continue
		}
		card := pciCard{bdf: strings.ToLower(name), id: vendor[2:] + ":" +
			strings.TrimPrefix(readText(files, dir+"/device"), "0x")}
		for line := range strings.Lines(readText(files, dir+"/uevent")) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DRIVER="); ok {
				card.driver = name
			}
		}
		cards = append(cards, card)
	}
	slices.SortFunc(cards, func(a, b pciCard) int { return strings.Compare(a.bdf, b.bdf) })
	return cards
}

// normalBDF writes an address as sysfs does: lower case, four digits of domain, not eight.
func normalBDF(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	domain, rest, ok := strings.Cut(s, ":")
	if !ok || !strings.Contains(rest, ":") {
		return s
	}
	domain = strings.TrimLeft(domain, "0")
	return strings.Repeat("0", max(0, 4-len(domain))) + domain + ":" + rest
}
