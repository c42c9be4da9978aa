package detect

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Which cards are linked directly. KFD lists each node's links to others; those of type 11 are
// xGMI, and what is neither that nor a processor's own is PCIe. NVIDIA's links stand in no file:
// the catalogue says what a chip can have (Figures.PeerLink).

// kfdXGMI is the type of a direct link between AMD's cards (HSA_IOLINKTYPE_XGMI).
const kfdXGMI = 11

// kfdLinks notes at each GPU the addresses of those it is linked to.
func kfdLinks(files fs.FS, gpus []GPU) {
	at := map[int]string{}
	for _, g := range gpus {
		at[g.Node] = g.BDF
	}
	for i := range gpus {
		dir := path.Join(kfdNodes, fmt.Sprint(gpus[i].Node), "io_links")
		for _, link := range namesIn(files, dir) {
			p := properties(readText(files, path.Join(dir, link, "properties")))
			if bdf := at[int(p["node_to"])]; p["type"] == kfdXGMI && bdf != "" &&
				bdf != gpus[i].BDF {
				gpus[i].Linked = append(gpus[i].Linked, bdf)
			}
		}
		slices.Sort(gpus[i].Linked)
	}
}
