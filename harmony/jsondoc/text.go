// The one reader of text that people's editors and other programs have written: files, flags' files
// and bodies.
//
// What must stay true: a text means the same with a byte order mark and without; what is in UTF-16
// by its mark, as Windows' shells write it, is UTF-8 afterwards. Everything else is left as it is.

package jsondoc

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Unmarked is a text without its byte order mark.
func Unmarked(b []byte) []byte {
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
