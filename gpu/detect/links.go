package detect

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Finds which cards are linked directly. KFD lists each node's links to others: type 11 is xGMI,
// and a link that is neither that nor a processor's own is PCIe. NVIDIA's links are in no file: the
// catalogue says what a chip can have (Figures.PeerLink).

// kfdXGMI is the type of a direct link between AMD's cards (HSA_IOLINKTYPE_XGMI).
const kfdXGMI = 11

// kfdLinks notes for each GPU the addresses of the GPUs that it is linked to.
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
