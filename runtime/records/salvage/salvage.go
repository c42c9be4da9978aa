// Package salvage reads records from a damaged SQLite file: page by page, without SQLite, which
// stops at the first damage.
//
// Only leaf pages of tables hold records, and each can be read alone. Damage to such a page loses
// its records; damage to other pages loses nothing. What must stay true: no input causes a panic or
// unbounded memory; returned rows may be damaged, so the caller verifies each record's checksum.
//
// The format is described at https://www.sqlite.org/fileformat2.html.
package salvage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
)

// PageSize is the page size of the files that this package reads, in bytes. It is a constant, so
// that a damaged header does not matter.
const PageSize = 4096

const (
	fileHeader = 100 // bytes before the first page's own header
	magic      = "SQLite format 3\x00"
	tableLeaf  = 13
	maxColumns = 64
	maxPayload = 1 << 30
)

// Rows yields the columns of all rows of all tables: int64, float64, string, []byte or nil. It
// reads the database at path and its write-ahead log.
func Rows(path string) (iter.Seq[[]any], error) {
	main, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	newest, _ := committed(log)
	d := database{main, newest}
	return func(yield func([]any) bool) {
		for n := range d.pages() {
			if !d.rows(n, yield) {
				return
			}
		}
	}, nil
}

// database is the file and the newer pages of its log.
type database struct {
	main []byte
	log  map[uint32][]byte
}

func (d database) pages() iter.Seq[uint32] {
	last := uint32(len(d.main) / PageSize)
	for n := range d.log {
		last = max(last, n)
	}
	return func(yield func(uint32) bool) {
		for n := uint32(1); n <= last && yield(n); n++ {
		}
	}
}

func (d database) page(n uint32) []byte {
	if p, ok := d.log[n]; ok {
		return p
	}
	if n == 0 || uint64(n)*PageSize > uint64(len(d.main)) {
		return nil
	}
	return d.main[uint64(n-1)*PageSize:][:PageSize]
}

func (d database) rows(n uint32, yield func([]any) bool) bool {
	page, start := d.page(n), 0
	if n == 1 {
		start = fileHeader
	}
	if page == nil || page[start] != tableLeaf {
		return true
	}
	cells := int(binary.BigEndian.Uint16(page[start+3:]))
	for i := range min(cells, (PageSize-start-8)/2) {
		offset := int(binary.BigEndian.Uint16(page[start+8+2*i:]))
		if offset >= PageSize {
			continue
		}
		if row := columns(d.payload(page[offset:])); row != nil && !yield(row) {
			return false
		}
	}
	return true
}

// payload is the full content of a cell, including its overflow pages; nil if it is damaged.
func (d database) payload(cell []byte) []byte {
	size, cell := varint(cell)
	_, cell = varint(cell) // the row's id
	if size < 0 || size > maxPayload {
		return nil
	}
	const most, least = PageSize - 35, (PageSize-12)*32/255 - 23
	local := int(size)
	if local > most {
		if local = least + (local-least)%(PageSize-4); local > most {
			local = least
		}
	}
	if local > len(cell) {
		return nil
	}
	content := cell[:local:local]
	if local == int(size) {
		return content
	}
	if cell = cell[local:]; len(cell) < 4 {
		return nil
	}
	for next := binary.BigEndian.Uint32(cell); len(content) < int(size); {
		page := d.page(next)
		if page == nil {
			return nil
		}
		next = binary.BigEndian.Uint32(page)
		content = append(content, page[4:min(PageSize, 4+int(size)-len(content))]...)
	}
	return content
}

func columns(payload []byte) (row []any) {
	size, types := varint(payload)
	headerSize := int64(len(payload) - len(types))
	if size < headerSize || size > int64(len(payload)) {
		return nil
	}
	types, body := types[:size-headerSize], payload[size:]
	for len(types) > 0 {
		var kind int64
		kind, types = varint(types)
		width := width(kind)
		if kind < 0 || width > int64(len(body)) || len(row) == maxColumns {
			return nil
		}
		row = append(row, column(kind, body[:width]))
		body = body[width:]
	}
	return row
}

func width(kind int64) int64 {
	switch {
	case kind >= 12:
		return (kind - 12) / 2
	case kind == 5:
		return 6
	case kind == 6, kind == 7:
		return 8
	case kind <= 4:
		return max(0, kind)
	}
	return 0
}

func column(kind int64, b []byte) any {
	switch {
	case kind == 0:
		return nil
	case kind >= 12 && kind%2 == 0:
		return b
	case kind >= 13:
		return string(b)
	case kind == 8, kind == 9:
		return kind - 8
	}
	var n int64
	for i, c := range b {
		if n = n<<8 | int64(c); i == 0 {
			n = int64(int8(c))
		}
	}
	if kind == 7 {
		return math.Float64frombits(uint64(n))
	}
	return n
}

// varint reads a big-endian number of 1 to 9 bytes; -1 if it is cut off.
func varint(b []byte) (n int64, rest []byte) {
	for i, c := range b {
		if i == 8 {
			return n<<8 | int64(c), b[9:]
		}
		n = n<<7 | int64(c&0x7f)
		if c < 0x80 {
			return n, b[i+1:]
		}
	}
	return -1, nil
}

const (
	walHeader   = 32
	frameHeader = 24
	// of a log whose checksums read words in big-endian order
	bigEndianMagic = 0x377f0683
)

// Log tells whether the database at path has a write-ahead log, and whether transactions follow
// damage in it, which SQLite ignores. No process may have the database open.
func Log(path string) (exists, damaged bool) {
	log, err := os.ReadFile(path + "-wal")
	_, damaged = committed(log)
	return err == nil, damaged
}

// Version is the user_version of the database at path by the newest transaction of its log, which
// is not changed; 0 if the file is no database.
func Version(path string) (int, error) {
	header := make([]byte, fileHeader)
	file, err := os.Open(path)
	if err == nil {
		_, _ = io.ReadFull(file, header) // a shorter file is no database
		file.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	pages, _ := committed(log)
	if first, ok := pages[1]; ok {
		header = first
	}
	if !bytes.HasPrefix(header, []byte(magic)) {
		return 0, nil
	}
	return int(int32(binary.BigEndian.Uint32(header[60:]))), nil
}

// committed returns the newest committed content of each page of a log. A frame's checksum
// continues that of the previous frame, so a damaged frame loses itself and the next one. damaged
// tells that a transaction follows such a frame, which an interrupted write cannot cause.
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
	broken := add([2]uint32{}, log[:24], order) != sum // damage was found
	if broken && len(log) >= walHeader+frameHeader {
		salt = string(log[walHeader+8 : walHeader+16]) // a damaged header: the first frame's
	}
	open := map[uint32][]byte{} // pages of the uncommitted transaction
	for log = log[walHeader:]; len(log) >= frameHeader+PageSize; log = log[frameHeader+PageSize:] {
		header, page := log[:frameHeader], log[frameHeader:frameHeader+PageSize]
		want := [2]uint32{binary.BigEndian.Uint32(header[16:]),
			binary.BigEndian.Uint32(header[20:])}
		valid := string(header[8:16]) == salt && // else of an earlier use of the file, or damaged
			add(add(sum, header[:8], order), page, order) == want
		sum = want
		if !valid {
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
