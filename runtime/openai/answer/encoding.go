// Compressed bodies.
//
// What must stay true: nothing is decoded before the body is read, and no more memory is used than
// for an uncompressed body: the limits apply before and after decompression.

package answer

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow bounds a decoder's memory for any frame: the least that RFC 8878 requires.
const zstdWindow = 8 << 20

// encodings open a compressed body, by the name in Content-Encoding.
var encodings = map[string]func(io.Reader) (io.Reader, func(), error){
	"gzip": func(r io.Reader) (io.Reader, func(), error) {
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	},
	"zstd": func(r io.Reader) (io.Reader, func(), error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	},
}

// contentEncoding is the encoding of a request's body, "" for none.
func contentEncoding(r *http.Request) string {
	name := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"),
		", ")))
	switch name {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	}
	return name
}

// decodedBody is a compressed body, opened when it is read.
type decodedBody struct {
	io.ReadCloser
	open func(io.Reader) (io.Reader, func(), error)
	text io.Reader
	end  func()
}

func (d *decodedBody) Read(b []byte) (n int, err error) {
	if d.text == nil {
		if d.text, d.end, err = d.open(d.ReadCloser); err != nil {
			d.text = nil
			return 0, err
		}
	}
	n, err = d.text.Read(b)
	if err != nil {
		d.end()
	}
	return n, err
}
