// The pages that were committed to the write-ahead log and are not in the file yet.

package salvage

import (
	"encoding/binary"
	"maps"
	"os"
)

const (
	walHeader   = 32
	frameHeader = 24
	// of a log whose checksums read words in big-endian order
	bigEndianMagic = 0x377f0683
)

// LogIsDamaged tells whether transactions in the write-ahead log of the database at path stand
// behind damage, where SQLite does not look. No process may have the database open.
func LogIsDamaged(path string) bool {
	log, err := os.ReadFile(path + "-wal")
	_, damaged := committed(log)
	return err == nil && damaged
}

// committed returns the newest committed content of each page of a log. A frame's checksum
// continues that of the frame before it, so a damaged frame costs itself and the next one. damaged
// tells that a transaction follows such a frame: an interrupted write leaves none.
func committed(log []byte) (pages map[uint32][]byte, damaged bool) {
	pages = map[uint32][]byte{}
	if len(log) < walHeader {
		return pages, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if binary.BigEndian.Uint32(log) == bigEndianMagic {
		order = binary.BigEndian
	}
	salt := string(log[16:24])
	sum := [2]uint32{binary.BigEndian.Uint32(log[24:]), binary.BigEndian.Uint32(log[28:])}
	broken := add([2]uint32{}, log[:24], order) != sum // damage was met
	if broken && len(log) >= walHeader+frameHeader {
		salt = string(log[walHeader+8 : walHeader+16]) // a damaged header: the first frame's
	}
	open := map[uint32][]byte{} // pages of a transaction that is not committed yet
	for log = log[walHeader:]; len(log) >= frameHeader+PageSize; log = log[frameHeader+PageSize:] {
		header, page := log[:frameHeader], log[frameHeader:frameHeader+PageSize]
		want := [2]uint32{binary.BigEndian.Uint32(header[16:]),
			binary.BigEndian.Uint32(header[20:])}
		whole := string(header[8:16]) == salt && // else of an earlier use of the file, or damaged
			add(add(sum, header[:8], order), page, order) == want
		sum = want
		if !whole {
			broken = true
			continue
		}
		open[binary.BigEndian.Uint32(header)] = page
		if binary.BigEndian.Uint32(header[4:]) != 0 { // the last frame of a transaction
			maps.Copy(pages, open)
			clear(open)
			damaged = damaged || broken
		}
	}
	return pages, damaged
}

// add continues the log's checksum.
func add(sum [2]uint32, b []byte, order binary.ByteOrder) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		sum[0] += order.Uint32(b) + sum[1]
		sum[1] += order.Uint32(b[4:]) + sum[0]
	}
	return sum
}
