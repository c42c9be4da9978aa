package derived

// Checksums of a file by block, in the file: a disk or a cable may change data, and a copy is read
// for months. A start does not wait for them; files are checked while nothing runs.

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
)

// ErrDamaged is wrapped by errors about a file that does not have its checksums.
var ErrDamaged = errors.New("is damaged")

// ErrStays is wrapped too where a damaged file cannot be discarded.
var ErrStays = errors.New("it stays")

// blockBytes is the block size of a checksum.
const blockBytes = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func Sum(block []byte) uint32 { return crc32.Checksum(block, castagnoli) }

// WithSums is size plus the length of the checksums; WithoutSums is its inverse.
func WithSums(size int64) int64 { return size + 4*((size+blockBytes-1)/blockBytes) }

func WithoutSums(total int64) int64 {
	return total - 4*((total+blockBytes+3)/(blockBytes+4))
}

// Sums are the checksums of bytes begin to end. pause is called before each block, which takes some
// milliseconds; its error stops the work.
func Sums(r io.ReaderAt, begin, end int64, pause func() error) (sums []byte, err error) {
	block := make([]byte, min(end-begin, blockBytes))
	for ; begin < end; begin += blockBytes {
		if err := pause(); err != nil {
			return nil, err
		}
		part := block[:min(end-begin, blockBytes)]
		if _, err := r.ReadAt(part, begin); err != nil {
			return nil, err
		}
		sums = binary.LittleEndian.AppendUint32(sums, Sum(part))
	}
	return sums, nil
}

// Aside renames a damaged file of which there may be no other, so that no start uses it.
func Aside(path string) error { return os.Rename(path, path+".damaged") }

// Check compares bytes begin to end of a file with their checksums. A damaged file is discarded, so
// that it is made again, with ErrDamaged and its first block that differs.
func Check(f *os.File, begin, end int64, want []byte, discard func(path string) error,
	pause func() error) error {
	have, err := Sums(f, begin, end, pause)
	if err != nil || bytes.Equal(have, want) {
		return err
	}
	for len(have) >= 4 && bytes.HasPrefix(want, have[:4]) {
		have, want, begin = have[4:], want[4:], begin+blockBytes
	}
	err = fmt.Errorf("%s %w in its bytes %d to %d", f.Name(), ErrDamaged, begin,
		min(begin+blockBytes, end))
	if failed := discard(f.Name()); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
		err = fmt.Errorf("%w; %w: %w", err, ErrStays, failed)
	}
	return err
}

// sumsKey is the metadata of a safetensors file with the checksums of its tensors' bytes, in hex.
const sumsKey = "crc32c"

// Put writes data at an offset of a tensor. It may be called concurrently.
type Put = func(tensor string, offset int64, data []byte) error

// WriteTensors writes a safetensors file with checksums.
func WriteTensors(path string, list []models.TensorSpec, metadata map[string]string,
	pause func() error, fill func(Put) error) error {
	size := models.TotalBytes(list)
	metadata = maps.Clone(metadata)
	metadata[sumsKey] = strings.Repeat("0", 2*int(WithSums(size)-size))
	head, places := models.FileHeader(list, metadata)
	begin := int64(len(head))
	return Write(path, func(f *File) error {
		if err := f.Truncate(begin + size); err != nil {
			return err
		}
		if err := fill(func(tensor string, offset int64, data []byte) error {
			_, err := f.WriteAt(data, places[tensor]+offset)
			return err
		}); err != nil {
			return err
		}
		sums, err := Sums(f, begin, begin+size, pause)
		if err != nil {
			return err
		}
		key := []byte(`"` + sumsKey + `":"`)
		hex.Encode(head[bytes.Index(head, key)+len(key):], sums)
		_, err = f.WriteAt(head, 0)
		return err
	})
}

// CheckTensors checks a safetensors file: its size and, if it has them, its checksums.
func CheckTensors(path string, discard func(path string) error, pause func() error) error {
	header, err := safetensors.Inspect(path)
	if err != nil || header.Metadata[sumsKey] == "" || len(header.Tensors) == 0 {
		return err
	}
	f, _, err := mapping.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	want, _ := hex.DecodeString(header.Metadata[sumsKey]) // else too short
	return Check(f, header.Tensors[0].Begin, header.Size, want, discard, pause)
}
