package device

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models/store"
)

// Checks before a model is loaded whether the fast kernels are right on this very card, once: the
// outcome is kept in a file. What must stay true: only the same program on the same kind of card
// under the same driver reads a record, and a kernel that was once found wrong is disabled.

// Verification is the outcome.
type Verification struct {
	Card    string    `json:"card"`
	Driver  string    `json:"driver"`
	Kernels string    `json:"kernels"` // the loaded image: "machine code sm_90a"
	Program string    `json:"program"` // the build, and the kernels that it carries
	When    time.Time `json:"when"`
	Proofs  []Proof   `json:"proofs"`
	Timings []Timing  `json:"timings,omitempty"`
	Untimed string    `json:"untimed,omitempty"` // why some are missing

	recorded bool
	failed   error // why nothing could be proved
}

// variants are what a verification needs of a device.
type variants interface {
	Prove(ctx context.Context, report func(Trial)) ([]Proof, error)
	Disable(variants ...Variant)
	Tune(ctx context.Context) ([]Timing, error)
	Choose(list []Timing)
}

// Verify proves the kernels, or reads the record of an earlier proof in folder. With folder ""
// nothing is read or kept. If a proof does not run, Verified says so: the card may still compute.
// Call it before the card has a model: a card lost to a kernel is opened again. A driver library
// named by hand is no exception: only tests opt out, since emulated proofs take long.
func (c *Card) Verify(ctx context.Context, folder string) {
	if os.Getenv(unproved) != "" {
		return
	}
	c.folder = folder
	c.verification = verify(ctx, folder, c.identity(), c.proving())
}

// A variant may lose the card by a wrong address or an instruction that it does not have. NVIDIA's
// drivers then refuse the process that card until its context is made again, so the caller must
// know which variant it was. AMD's runtime ends the process.

// CrashError says that the card was lost during a proof.
type CrashError struct {
	Variants []Variant // that were tried; one of them did it
	Err      error
}

func (e *CrashError) Error() string { return fmt.Sprintf("%v: %v", e.Variants, e.Err) }
func (e *CrashError) Unwrap() error { return e.Err }

// withVariants adds the variants that were tried to the error of a lost card.
func withVariants(err error, variants ...Variant) error {
	if !errors.Is(err, driver.ErrLost) {
		return err
	}
	return &CrashError{variants, err}
}

// reopeningCard is a card whose variants are proved even if one of them loses the card: that
// variant is wrong, and the others are proved after the card is opened again.
type reopeningCard struct {
	variants
	reopen func() (variants, error)
}

func (c *Card) proving() *reopeningCard {
	return &reopeningCard{c.Device, func() (variants, error) {
		err := c.reopen()
		return c.Device, err
	}}
}

func (r *reopeningCard) Prove(ctx context.Context, report func(Trial)) ([]Proof, error) {
	var lost []Proof
	for {
		list, err := r.variants.Prove(ctx, report)
		if err == nil {
			return append(lost, list...), nil
		}
		crash, ok := errors.AsType[*CrashError](err)
		if !ok || slices.ContainsFunc(lost,
			func(p Proof) bool { return slices.Contains(crash.Variants, p.Variant) }) {
			return nil, err
		}
		for _, f := range crash.Variants {
			lost = append(lost, Proof{Variant: f, Why: "the GPU was lost: " + crash.Err.Error()})
		}
		next, failed := r.reopen()
		if failed != nil {
			return nil, errors.Join(err, fmt.Errorf("open the GPU again: %w", failed))
		}
		r.variants = next
		for _, p := range lost {
			next.Disable(p.Variant)
		}
	}
}

// Tune opens the GPU again if a way loses it. There are no times then.
func (r *reopeningCard) Tune(ctx context.Context) ([]Timing, error) {
	list, err := r.variants.Tune(ctx)
	if errors.Is(err, driver.ErrLost) {
		next, failed := r.reopen()
		if failed != nil {
			return nil, errors.Join(err, fmt.Errorf("open the GPU again: %w", failed))
		}
		r.variants = next
	}
	return list, err
}

// Prove proves the kernels whatever is recorded, and records the outcome. report gets each trial.
func (c *Card) Prove(ctx context.Context, report func(Trial)) ([]Proof, error) {
	t := c.identity()
	if t.prove(ctx, c.folder, c.proving(), report); t.failed != nil {
		return nil, t.failed
	}
	c.verification = t
	return t.Proofs, nil
}

// Timings are the times that the card's kernels were chosen by; nil: they were not timed.
func (c *Card) Timings() []Timing { return c.verification.Timings }

// Verified describes the kernels, with a sentence for each wrong one, which is not used.
func (c *Card) Verified() (summary string, wrong []string) {
	kernels := c.Device.Kernels()
	return c.verification.summarise(kernels + neverRun(kernels))
}

// identity identifies the card, driver, kernels and program of a record.
func (c *Card) identity() Verification {
	version := "unknown"
	if v, err := c.Driver.Version(); err == nil {
		version = fmt.Sprint(v)
	}
	return Verification{Card: c.Device.Model(), Driver: fmt.Sprintf("%s %s", c.Driver.API(),
		version), Kernels: c.Device.Kernels(), Program: buildID()}
}

// buildID names this very program: its commit, its file, and the kernels inside.
func buildID() string {
	h := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintln(h, info.Main.Version, info.Settings)
	}
	if self, err := os.Executable(); err == nil {
		if f, err := os.Stat(self); err == nil {
			fmt.Fprintln(h, f.Size(), f.ModTime().UnixNano())
		}
	}
	// has the digests of all sources
	manifest, err := assets.Kernels.ReadFile("kernels/manifest.json")
	fmt.Fprintln(h, err)
	h.Write(manifest)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// identity is compared in full: names of files are only short hashes.
func (t *Verification) identity() string {
	return strings.Join([]string{t.Card, t.Driver, t.Kernels, t.Program}, "\n")
}

func (t *Verification) file(folder string) string {
	sum := sha256.Sum256([]byte(t.identity()))
	return filepath.Join(folder, hex.EncodeToString(sum[:8])+".json")
}

func verify(ctx context.Context, folder string, about Verification, dev variants) Verification {
	if folder != "" {
		var have Verification
		data, err := os.ReadFile(about.file(folder))
		if err == nil && json.Unmarshal(data, &have) == nil && len(have.Proofs) > 0 &&
			have.identity() == about.identity() {
			for _, p := range have.Proofs {
				if !p.OK {
					dev.Disable(p.Variant)
				}
			}
			dev.Choose(have.Timings)
			have.recorded = true
			return have
		}
	}
	about.prove(ctx, folder, dev, func(Trial) {})
	return about
}

// prove fills in the proofs and the times, and keeps them; an unwritten record is made again next
// time. A card without memory for the times has none.
func (t *Verification) prove(ctx context.Context, folder string, dev variants, report func(Trial)) {
	t.When = time.Now().UTC().Truncate(time.Second)
	if t.Proofs, t.failed = dev.Prove(ctx, report); t.failed != nil {
		return
	}
	var err error
	if os.Getenv(unproved) == "" {
		if t.Timings, err = dev.Tune(ctx); err != nil {
			t.Untimed = "; not all timed: " + err.Error()
		}
		for _, p := range t.Proofs {
			if !p.OK { // again, if Tune has opened the card again
				dev.Disable(p.Variant)
			}
		}
	}
	lost := errors.Is(err, driver.ErrLost) // recorded, or each start would lose the card again
	if dev.Choose(t.Timings); folder == "" || ctx.Err() != nil ||
		err != nil && len(t.Timings) == 0 && !lost {
		return
	}
	if data, err := json.Marshal(t); err == nil {
		_ = store.WriteFile(t.file(folder), data, 0o644)
	}
}

// provenImage is the image that has run on a card; docs/gpu.md says which kernels of it did.
const provenImage = "machine code sm_90a"

// neverRun says of an image that no card had run when this was released.
func neverRun(kernels string) string {
	if kernels == provenImage {
		return ""
	}
	return ", which no GPU had run when this was released"
}

func (t *Verification) summarise(kernels string) (summary string, wrong []string) {
	right := 0
	for _, p := range t.Proofs {
		if p.OK {
			right++
			continue
		}
		fallback := "slower kernels take its place"
		if p.Variant == Sampling {
			fallback = "the CPU chooses tokens"
		}
		wrong = append(wrong, fmt.Sprintf("%s is wrong on this GPU, %s: %s", p.Variant, fallback,
			p.Why))
	}
	switch {
	case t.failed != nil:
		return fmt.Sprintf("%s; not proved on this GPU: %v", kernels, t.failed),
			[]string{"the kernels could not be proved on this GPU: " + t.failed.Error()}
	case len(t.Proofs) == 0:
		return kernels, nil
	}
	when := "proved now"
	if t.recorded {
		when = "as proved on " + t.When.Format(time.DateOnly)
	}
	return fmt.Sprintf("%s; %d of %d fast kernels right on this GPU, %s%s", kernels, right,
		len(t.Proofs), when, t.Untimed), wrong
}

// ProofFolder is the folder in the user's cache where outcomes are kept.
func ProofFolder() string { return filepath.Join(xdg.CacheHome, "ossrun", "gpu") }

// unproved is the variable by which tests leave the proofs out.
const unproved = "OSSRUN_UNPROVED"

// ByHand tells whether a driver library was named.
func ByHand() bool {
	return cmp.Or(os.Getenv(Libraries[0].Variable), os.Getenv(Libraries[1].Variable)) != ""
}
