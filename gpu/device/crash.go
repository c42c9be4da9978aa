package device

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// A variant may be so wrong on a card that it does not end: a wrong address, an instruction that is
// none there. NVIDIA's drivers do nothing more for the process on that card then, the reference
// kernels included, until its context is made anew; so who asked for the proof must know which
// variant it was. AMD's runtime ends the process.

// CrashError is a proof in which the card was lost.
type CrashError struct {
	Variants []Variant // that were tried; one of them did it
	Err      error
}

func (e *CrashError) Error() string { return fmt.Sprintf("%v: %v", e.Variants, e.Err) }
func (e *CrashError) Unwrap() error { return e.Err }

// crashed names the variants that were tried when an error came; the error itself where the card is
// not lost.
func crashed(err error, variants ...Variant) error {
	if !errors.Is(err, driver.ErrLost) {
		return err
	}
	return &CrashError{variants, err}
}

// variantsOf are the variants that multiply by a unit.
func variantsOf(u kernels.Unit) (list []Variant) {
	for _, f := range Variants() {
		if strings.HasPrefix(string(f), "prefill_") && unitOf(f) == u {
			list = append(list, f)
		}
	}
	return list
}
