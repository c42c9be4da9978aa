package q8

// Checksums of a copy by block, stored after its matrices: a disk or a cable may change data, and a
// copy is read for months. A start does not wait for them; Check reads the copy when idle.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/ossrun/ossrun/models/mapping"
)

// ErrDamaged is wrapped by Check's error.
var ErrDamaged = errors.New("is damaged")

// sumBytes is the block size of a checksum.
const sumBytes = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// withSums is size plus the length of the checksums; withoutSums is its inverse.
func withSums(size int64) int64 { return size + 4*((size+sumBytes-1)/sumBytes) }

func withoutSums(total int64) int64 {
	return total - 4*((total+sumBytes+3)/(sumBytes+4))
}

// checksums reads the first size bytes of a copy. pause is called before each block.
func checksums(r io.ReaderAt, size int64, pause func() error) (sums []byte, err error) {
	block := make([]byte, min(size, sumBytes))
	for offset := int64(0); offset < size; offset += sumBytes {
		if err := pause(); err != nil {
			return nil, err
		}
		part := block[:min(size-offset, sumBytes)]
		if _, err := r.ReadAt(part, offset); err != nil {
			return nil, err
		}
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(part, castagnoli))
	}
	return sums, nil
}

// Check reads the copy at path. A damaged one is removed, so that the next start recreates it, with
// ErrDamaged. A missing one is no error.
func Check(path string, pause func() error) error {
	f, length, err := mapping.OpenRegular(path)
	if err != nil {
		return nil // removed by another process
	}
	defer f.Close()
	version, total := readTrailer(f, length)
	if version != formatVersion {
		return nil
	}
	size := withoutSums(total)
	want := make([]byte, total-size)
	_, err = f.ReadAt(want, size)
	var have []byte
	if err == nil {
		have, err = checksums(f, size, pause)
	}
	if err != nil || bytes.Equal(have, want) {
		return err
	}
	for i := 0; ; i += 4 {
		if !bytes.Equal(have[i:i+4], want[i:i+4]) {
			offset := int64(i/4) * sumBytes
			return errors.Join(fmt.Errorf("%s %w in its bytes %d to %d", path, ErrDamaged, offset,
				min(offset+sumBytes, size)), os.Remove(path))
		}
	}
}
