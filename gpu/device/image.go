package device

import "fmt"

// Image is the compiled kernels of this program for an architecture.
func Image(arch string) ([]byte, error) {
	return nil, fmt.Errorf("this program has no kernels for %q", arch)
}
