package hubtest

// Files with bytes from a seed, so that gigabytes need no memory and no disk.

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
)

// File is a file of a repository.
type File struct {
	Size int64
	// in the store on the other host, named by its sha256; else on the hub, named by git's hash
	LFS   bool
	Bytes []byte
	Seed  uint64 // the bytes, when Bytes is nil

	once        sync.Once
	sha256, git string
}

// Text is a small file that git itself stores.
func Text(s string) *File { return &File{Size: int64(len(s)), Bytes: []byte(s)} }

// maxGenerated is the most bytes that are hashed, which takes a minute.
const maxGenerated = 64 << 30

// Generated is an LFS file of a size. Its bytes are hashed when its name is requested.
func Generated(size int64, seed uint64) *File {
	if size > maxGenerated {
		panic(fmt.Sprintf("%d bytes would be hashed for longer than any test waits: use Claimed", size))
	}
	return &File{Size: size, LFS: true, Seed: seed}
}

// Claimed is an LFS file with a right description and wrong bytes.
func Claimed(size int64) *File {
	f := &File{Size: size, LFS: true}
	f.once.Do(func() { f.sha256 = hex.EncodeToString(make([]byte, sha256.Size)) })
	return f
}

// LFS is an LFS file with known bytes.
func LFS(content []byte) *File {
	return &File{Size: int64(len(content)), LFS: true,
		Bytes: content}
}

// ReadAt reads the file's bytes.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.Size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), f.Size-off))
	if f.Bytes != nil {
		copy(p[:n], f.Bytes[off:])
	} else {
		generate(p[:n], off, f.Seed)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// generate fills p with the bytes from off: each 8 are a mix of their position.
func generate(p []byte, off int64, seed uint64) {
	var word [8]byte
	at := uint64(off) &^ 7
	if skip := int(off & 7); skip != 0 {
		binary.LittleEndian.PutUint64(word[:], mix(at+seed))
		p = p[copy(p, word[skip:]):]
		at += 8
	}
	for ; len(p) >= 8; p, at = p[8:], at+8 {
		binary.LittleEndian.PutUint64(p, mix(at+seed))
	}
	if len(p) > 0 {
		binary.LittleEndian.PutUint64(word[:], mix(at+seed))
		copy(p, word[:])
	}
}

// mix is one round of multiply and xorshift: enough that no two pieces of a file are alike.
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// SHA256 is the hash of the file's bytes, in hex.
func (f *File) SHA256() string { f.once.Do(f.hash); return f.sha256 }

// ETag is the hub's name of the content.
func (f *File) ETag() string {
	f.once.Do(f.hash)
	if f.LFS {
		return f.sha256
	}
	return f.git
}

func (f *File) hash() {
	full, git := sha256.New(), sha1.New()
	fmt.Fprintf(git, "blob %d\x00", f.Size)
	both := io.Writer(full)
	if !f.LFS {
		both = io.MultiWriter(full, git)
	}
	if _, err := io.Copy(both, io.NewSectionReader(f, 0, f.Size)); err != nil {
		panic(err) // memory does not fail
	}
	f.sha256, f.git = hex.EncodeToString(full.Sum(nil)), hex.EncodeToString(git.Sum(nil))
}
