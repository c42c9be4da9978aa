package device

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// A variant may be so wrong on a card that the card is lost: it uses a wrong address or an
// instruction that the card does not have. NVIDIA's drivers then do nothing more for the process on
// that card, not even for the reference kernels, until its context is made anew; so the caller of
// the proof must know which variant it was. AMD's runtime ends the process.

// CrashError says that the card was lost during a proof.
type CrashError struct {
	Variants []Variant // that were tried; one of them did it
	Err      error
}

func (e *CrashError) Error() string { return fmt.Sprintf("%v: %v", e.Variants, e.Err) }
func (e *CrashError) Unwrap() error { return e.Err }

// crashed adds the variants that were tried to an error; it returns the error itself where the card
// is not lost.
func crashed(err error, variants ...Variant) error {
	if !errors.Is(err, driver.ErrLost) {
		return err
	}
	return &CrashError{variants, err}
}

// variantsOf lists the variants that multiply with a unit.
func variantsOf(u kernels.Unit) (list []Variant) {
	for _, f := range Variants() {
		if strings.HasPrefix(string(f), "prefill_") && unitOf(f) == u {
			list = append(list, f)
		}
	}
	return list
}
