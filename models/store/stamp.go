package store

// A stamp stands beside a blob and says that its bytes were hashed: BLOB.sha256, in the form that
// sha256sum -c reads. A valid stamp is not older than the blob's last write, so a blob that was
// written to since then is hashed again.

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// StampSuffix ends a stamp's name.
const StampSuffix = ".sha256"

// WriteStamp records a blob's sha256.
func WriteStamp(blob string, sha256 []byte) error {
	return WriteFile(blob+StampSuffix,
		[]byte(hex.EncodeToString(sha256)+"  "+filepath.Base(blob)+"\n"))
}

// Stamped gives the sha256 (hex) that was found when a blob was last hashed, if it was not written
// to since.
func Stamped(blob string) (string, bool) {
	content, err := os.Stat(blob)
	if err != nil {
		return "", false
	}
	stamp, err := os.Stat(blob + StampSuffix)
	if err != nil || content.ModTime().After(stamp.ModTime()) || stamp.Size() > 512 {
		return "", false
	}
	text, err := mapping.ReadFile(blob+StampSuffix, 1<<20)
	if err != nil {
		return "", false
	}
	sum, name, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), "  ")
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 || !ok ||
		name != filepath.Base(blob) {
		return "", false
	}
	return sum, true
}
