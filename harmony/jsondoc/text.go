// The one reader of text from editors and other programs: files, flags' files and bodies.
//
// What must stay true: a text means the same with and without a byte order mark. UTF-16 with a
// mark, as from Windows' shells, becomes UTF-8. Everything else is unchanged.

package jsondoc

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// StripBOM returns a text without its byte order mark.
func StripBOM(b []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return b[3:]
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return b
	}
	units := make([]uint16, 0, len(b)/2)
	for b = b[2:]; len(b) > 1; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return []byte(string(utf16.Decode(units)))
}
