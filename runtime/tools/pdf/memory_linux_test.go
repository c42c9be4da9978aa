package pdf

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/tools/pdf/pdftest"
)

// What a document of a few kilobytes makes this process hold at once is hardly more than the bound
// of its copy.
func TestADocumentsMemory(t *testing.T) {
	most := func(name string) (bytes int64) {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), name+":")
		fmt.Sscan(rest, &bytes)
		return bytes << 10
	}
	if _, err := Text(t.Context(), pdftest.Document("the program is compiled")); err != nil {
		t.Fatal(err)
	}
	large := page(pdftest.Compressed([]byte("BT /F1 1 Tf "+
		strings.Repeat("(abcdefgh) Tj ", 1<<20/14)+"ET")), font)
	debug.FreeOSMemory()
	before := most("VmRSS")
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skip(err) // the highest mark cannot be set back
	}
	_, err := Text(t.Context(), large)
	if took := most("VmHWM") - before; took > memory<<16+(96<<20) {
		t.Errorf("%d MiB for %d bytes (%v)", took>>20, len(large), err)
	} else {
		t.Log(took >> 20)
	}
}
