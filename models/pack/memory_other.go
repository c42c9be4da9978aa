//go:build !unix

package pack

// Elsewhere the memory is Go's, which also comes zeroed from the system and is not touched before
// it is written; it has no protection.

func reserve(size int) (data []byte, free func() error, err error) {
	return make([]byte, size), func() error { return nil }, nil
}

func protect([]byte) error { return nil }
