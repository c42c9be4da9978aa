package hubtest

// What a file of a test says of itself.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestGenerated: a name is the hash of the bytes, and a size that would be hashed for hours is
// refused at once; Claimed has no such bound.
func TestGenerated(t *testing.T) {
	f, sum := Generated(1_000_003, 7), sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, f.Size)); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.ETag() || got != f.SHA256() {
		t.Errorf("%s is called %s", got, f.ETag())
	}
	if name := Claimed(1 << 40).ETag(); len(name) != 64 {
		t.Errorf("a terabyte is called %q", name)
	}
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "use Claimed") {
			t.Errorf("a terabyte: %s", said)
		}
	}()
	Generated(1<<40, 1)
}
