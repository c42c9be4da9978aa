package pack

// Packs written here are read back byte for byte; invalid packs are refused; and the format's
// purpose is measured: zeros take no memory.

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// builder writes a pack and the file that it represents.
type builder struct{ records, want []byte }

func (b *builder) record(kind byte, n int, payload []byte) {
	b.records = append(b.records, kind)
	b.records = binary.LittleEndian.AppendUint64(b.records, uint64(n))
	b.records = append(b.records, payload...)
}

func (b *builder) literal(data []byte) {
	b.record(literal, len(data), data)
	b.want = append(b.want, data...)
}

func (b *builder) zeros(n int) {
	b.record(zeros, n, nil)
	b.want = append(b.want, make([]byte, n)...)
}

func (b *builder) copy(from, n int) {
	b.record(copied, n, binary.LittleEndian.AppendUint64(nil, uint64(from)))
	b.want = append(b.want, b.want[from:from+n]...)
}

func (b *builder) planes(data []byte) {
	var split []byte
	for plane := range 2 {
		for i := plane; i < len(data); i += 2 {
			split = append(split, data[i])
		}
	}
	b.record(planes, len(data), split)
	b.want = append(b.want, data...)
}

// raw is the pack before gzip.
func (b *builder) raw() []byte {
	sum := sha256.Sum256(b.want)
	head := binary.LittleEndian.AppendUint64([]byte(magic), uint64(len(b.want)))
	return append(append(head, sum[:]...), b.records...)
}

func squeeze(raw []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(raw)
	z.Close()
	return out.Bytes()
}

func noise(n int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// unpackChecked unpacks a pack and checks the announced SHA-256.
func unpackChecked(pack []byte) (*Memory, error) {
	m, err := Unpack(bytes.NewReader(pack))
	if err == nil && sha256.Sum256(m.Bytes) != m.SHA256 {
		return nil, errors.Join(fmt.Errorf("the unpacked file's SHA-256 is not %x", m.SHA256),
			m.Free())
	}
	return m, err
}

func TestUnpack(t *testing.T) {
	for name, build := range map[string]func(b *builder){
		"literal":   func(b *builder) { b.literal([]byte("hello")) },
		"zeros":     func(b *builder) { b.zeros(3*chunk + 5) },
		"planes":    func(b *builder) { b.planes(noise(2*chunk+2*1001, 1)) },
		"one value": func(b *builder) { b.planes([]byte{1, 2}) },
		"copy of the last": func(b *builder) {
			b.literal([]byte("abcdef"))
			b.copy(0,
				6)
			b.copy(3, 1)
			b.copy(0, 13)
		},
		"copy over a boundary": func(b *builder) {
			b.literal(noise(5000, 2))
			b.zeros(
				9000)
			b.literal(noise(77, 3))
			b.copy(10, 14000)
		},
		"everything, many times": func(b *builder) {
			random := rand.New(rand.NewPCG(7, 7))
			for range 300 {
				n := 1 + random.IntN(9000)
				switch random.IntN(4) {
				case literal:
					b.literal(noise(n, random.Uint64()))
				case zeros:
					b.zeros(n)
				case planes:
					b.planes(noise(2*n, random.Uint64()))
				case copied:
					if n <= len(b.want) {
						b.copy(random.IntN(len(b.want)-n+1), n)
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b builder
			build(&b)
			m, err := unpackChecked(squeeze(b.raw()))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Bytes, b.want) {
				t.Error("the bytes differ")
			}
			if err := m.Free(); err != nil {
				t.Error(err)
			}
			if err := m.Free(); err != nil {
				t.Errorf("freeing twice: %v", err)
			}
		})
	}
}

func TestRefusePack(t *testing.T) {
	build := func(do func(b *builder)) []byte {
		var b builder
		b.literal([]byte("abcdef"))
		if do != nil {
			do(&b)
		}
		return b.raw()
	}
	// lie appends an invalid record.
	lie := func(kind byte, n uint64, payload ...byte) []byte {
		return build(func(b *builder) {
			b.want = append(b.want, make([]byte, 10)...)
			b.records = binary.LittleEndian.AppendUint64(append(b.records, kind), n)
			b.records = append(b.records, payload...)
		})
	}
	at := func(offset uint64) []byte { return binary.LittleEndian.AppendUint64(nil, offset) }
	good := build(nil)
	with := func(i int, bytes ...byte) []byte {
		raw := append([]byte{}, good...)
		copy(raw[i:], bytes)
		return raw
	}
	for _, test := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"magic", with(7, '2'), `the pack begins with "OSSPACK2", not OSSPACK1`},
		{"no head", good[:40], "reading the pack's head: unexpected EOF"},
		{"nothing", nil, "reading the pack's head: unexpected EOF"},
		{"length 0", with(8, 0), "the pack announces 0 bytes, outside 1..1073741824"},
		{"length over the limit", with(8, at(MaxSize+1)...),
			"the pack announces 1073741825 bytes, outside 1..1073741824"},
		{"length 2^64-1", with(8, at(1<<64-1)...),
			"the pack announces 18446744073709551615 bytes, outside 1..1073741824"},
		{"hash", with(16, good[16]^1), "the unpacked file's SHA-256 is not "},
		{"a weight", with(len(good)-1, 'g'), "the unpacked file's SHA-256 is not "},
		{"goes on", append(append([]byte{}, good...), 0), "the pack has more than its 6 bytes"},
		{"ends early", build(func(b *builder) { b.want = append(b.want, 1) }),
			"unpacking at byte 6: unexpected EOF"},
		{"ends in a record's head", lie(zeros, 10)[:len(lie(zeros, 10))-1],
			"unpacking at byte 6: unexpected EOF"},
		{"ends in a literal", lie(literal, 10, 1, 2, 3), "unpacking at byte 6: unexpected EOF"},
		{"ends in a plane", lie(planes, 10, 1, 2, 3), "unpacking at byte 6: unexpected EOF"},
		{"empty record", lie(zeros, 0), "unpacking at byte 6: a record of 0 bytes, with 10 to go"},
		{"too long", lie(zeros, 11), "unpacking at byte 6: a record of 11 bytes, with 10 to go"},
		{"wraps", lie(literal, 1<<64-1),
			"unpacking at byte 6: a record of 18446744073709551615 bytes, with 10 to go"},
		{"odd planes", lie(planes, 9), "unpacking at byte 6: planes of 9 bytes, which is odd"},
		{"copy of what is not there", lie(copied, 4, at(3)...),
			"unpacking at byte 6: a copy of 4 bytes from 3, which are not unpacked yet"},
		{"copy from beyond", lie(copied, 4, at(7)...),
			"unpacking at byte 6: a copy of 4 bytes from 7, which are not unpacked yet"},
		{"copy wraps", lie(copied, 4, at(1<<64-2)...),
			"unpacking at byte 6: a copy of 4 bytes from 18446744073709551614, which are not " +
				"unpacked yet"},
		{"copy without an offset", lie(copied, 4), "unpacking at byte 6: unexpected EOF"},
		{"unknown kind", lie(4, 4), "unpacking at byte 6: record kind 4 is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := unpackChecked(squeeze(test.raw))
			if err == nil {
				m.Free()
				t.Fatal("it is unpacked")
			}
			if !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("\n got: %s\nwant: %s", err, test.want)
			}
		})
	}
	t.Run("gzip", func(t *testing.T) {
		whole := squeeze(good)
		for name, packed := range map[string][]byte{
			"not gzip":     good,
			"cut":          whole[:len(whole)-9],
			"no checksum":  whole[:len(whole)-8],
			"bad checksum": append(append([]byte{}, whole[:len(whole)-8]...), make([]byte, 8)...),
			"two streams":  append(append([]byte{}, whole...), whole...),
			"a tail":       append(append([]byte{}, whole...), "tail"...),
		} {
			if m, err := unpackChecked(packed); err == nil {
				m.Free()
				t.Errorf("%s: it is unpacked", name)
			}
		}
	})
}

func FuzzUnpack(f *testing.F) {
	var b builder
	b.literal([]byte("abcdef"))
	b.zeros(5000)
	b.planes(noise(64, 1))
	b.copy(3, 5000)
	f.Add(b.raw())
	f.Add(b.raw()[:60])
	// The input is the pack before gzip, whose own reader is not ours to test.
	f.Fuzz(func(t *testing.T, raw []byte) {
		const most = 1 << 20
		if len(raw) < len(magic)+8 || binary.LittleEndian.Uint64(raw[len(magic):]) > most {
			return
		}
		size := binary.LittleEndian.Uint64(raw[len(magic):])
		m, err := Unpack(bytes.NewReader(squeeze(raw)))
		if err != nil {
			return
		}
		defer m.Free()
		if uint64(len(m.Bytes)) != size || !bytes.Equal(m.SHA256[:], raw[len(magic)+8:][:32]) {
			t.Errorf("%d bytes of hash %x, announced %d", len(m.Bytes), m.SHA256, size)
		}
	})
}
