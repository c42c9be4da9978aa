package device

import (
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
)

// Whether the fast kernels are right on this very card is known before a model is loaded: each is held to the plain kernels once, which takes a
// fraction of a second, and the outcome is kept in a file for the next start. What must stay true: a record is read by nobody but the same program on
// the same kind of card under the same driver, and a kernel that was found wrong is out of use whether it was found now or then.

// Trust is the outcome.
type Trust struct {
	Card    string    `json:"card"`
	Driver  string    `json:"driver"`
	Kernels string    `json:"kernels"` // what is loaded: "machine code sm_90a"
	Program string    `json:"program"` // the build, and the kernels that it carries
	When    time.Time `json:"when"`
	Proofs  []Proof   `json:"proofs"`

	recorded bool
	failed   error // why nothing could be proved
}

// forms are what a trust needs of a device.
type forms interface {
	Prove(ctx context.Context) ([]Proof, error)
	Distrust(forms ...Form)
	Chosen() []Form
}

// Trust proves the kernels, or reads in folder that this was done. With folder "" nothing is read or kept. A proof that does not run is told by
// Trusted: the card may still compute. Where the driver library was named by hand nothing is proved. It is for a card that has no model yet: one that is
// lost to a kernel is opened anew.
func (c *Card) Trust(ctx context.Context, folder string) {
	if byHand() {
		return
	}
	c.folder = folder
	c.trust = establish(ctx, folder, c.about(), c.proving())
}

// revived is a card whose forms are proved though the card may be lost to one: that form is wrong, and the others are proved on the card as it is opened
// anew.
type revived struct {
	forms
	reopen func() (forms, error)
}

// proving is the card for a proof.
func (c *Card) proving() *revived {
	return &revived{c.Device, func() (forms, error) { err := c.reopen(); return c.Device, err }}
}

func (r *revived) Prove(ctx context.Context) ([]Proof, error) {
	var lost []Proof
	for {
		list, err := r.forms.Prove(ctx)
		if err == nil {
			return append(lost, list...), nil
		}
		var crash *CrashError
		if !errors.As(err, &crash) || slices.ContainsFunc(lost, func(p Proof) bool { return slices.Contains(crash.Forms, p.Form) }) {
			return nil, err
		}
		for _, f := range crash.Forms {
			lost = append(lost, Proof{Form: f, Why: "the card was lost: " + crash.Err.Error()})
		}
		again, failed := r.reopen()
		if failed != nil {
			return nil, errors.Join(err, fmt.Errorf("open the card again: %w", failed))
		}
		r.forms = again
		for _, p := range lost {
			again.Distrust(p.Form)
		}
	}
}

// Prove proves the kernels anew, whatever is recorded, and records that.
func (c *Card) Prove(ctx context.Context) ([]Proof, error) {
	t := c.about()
	if t.prove(ctx, c.folder, c.proving()); t.failed != nil {
		return nil, t.failed
	}
	c.trust = t
	return t.Proofs, nil
}

// Trusted says what the kernels are and whether they are right, and a sentence for each that is not: the plain kernels take its place.
func (c *Card) Trusted() (summary string, wrong []string) { return c.trust.say(c.Device.Kernels()) }

// about is what a record is for.
func (c *Card) about() Trust {
	version := "unknown"
	if v, err := c.Driver.Version(); err == nil {
		version = fmt.Sprint(v)
	}
	return Trust{Card: c.Device.Model(), Driver: fmt.Sprintf("%s %s", c.Driver.API(), version), Kernels: c.Device.Kernels(), Program: build()}
}

// build names this very program: its commit, its file, and the kernels inside.
func build() string {
	h := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintln(h, info.Main.Version, info.Settings)
	}
	if self, err := os.Executable(); err == nil {
		if f, err := os.Stat(self); err == nil {
			fmt.Fprintln(h, f.Size(), f.ModTime().UnixNano())
		}
	}
	manifest, err := assets.Kernels.ReadFile("kernels/manifest.json") // has the digests of all sources
	fmt.Fprintln(h, err)
	h.Write(manifest)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// file is where a record for this lies.
func (t *Trust) file(folder string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{t.Card, t.Driver, t.Kernels, t.Program}, "\n")))
	return filepath.Join(folder, hex.EncodeToString(sum[:8])+".json")
}

// same tells whether a record is for this: names of files are short hashes.
func (t *Trust) same(o *Trust) bool {
	return t.Card == o.Card && t.Driver == o.Driver && t.Kernels == o.Kernels && t.Program == o.Program
}

// has tells whether forms that are proved only where they are chosen stand in the record: another start may have chosen others.
func (t *Trust) has(forms []Form) bool {
	for _, f := range forms {
		if !slices.ContainsFunc(t.Proofs, func(p Proof) bool { return p.Form == f }) {
			return false
		}
	}
	return true
}

func establish(ctx context.Context, folder string, about Trust, dev forms) Trust {
	if folder != "" {
		var have Trust
		data, err := os.ReadFile(about.file(folder))
		if err == nil && json.Unmarshal(data, &have) == nil && have.same(&about) && len(have.Proofs) > 0 && have.has(dev.Chosen()) {
			for _, p := range have.Proofs {
				if !p.OK {
					dev.Distrust(p.Form)
				}
			}
			have.recorded = true
			return have
		}
	}
	about.prove(ctx, folder, dev)
	return about
}

// prove fills in the proofs and keeps them. A record that cannot be written is made anew by the next start.
func (t *Trust) prove(ctx context.Context, folder string, dev forms) {
	t.When = time.Now().UTC().Truncate(time.Second)
	if t.Proofs, t.failed = dev.Prove(ctx); t.failed != nil || folder == "" {
		return
	}
	data, err := json.Marshal(t)
	if err != nil {
		return
	}
	_ = keep(t.file(folder), data)
}

// keep writes a file beside its place and renames it, so that nobody reads half of one.
func keep(path string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "record-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

func (t *Trust) say(kernels string) (summary string, wrong []string) {
	right := 0
	for _, p := range t.Proofs {
		if p.OK {
			right++
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s is wrong on this card, slower kernels take its place: %s", p.Form, p.Why))
	}
	switch {
	case t.failed != nil:
		return fmt.Sprintf("%s; not proved on this card: %v", kernels, t.failed), []string{"the kernels could not be proved on this card: " + t.failed.Error()}
	case len(t.Proofs) == 0:
		return kernels, nil
	case t.recorded:
		return fmt.Sprintf("%s; %d of %d fast ones right on this card, as proved on %s", kernels, right, len(t.Proofs), t.When.Format(time.DateOnly)), wrong
	}
	return fmt.Sprintf("%s; %d of %d fast ones right on this card, proved now", kernels, right, len(t.Proofs)), wrong
}

// Records is the folder in the user's cache where outcomes are kept.
func Records() string { return filepath.Join(xdg.CacheHome, "ossrun", "gpu") }

// byHand tells that a driver library was named (Libraries): what is behind it is no card of this machine as a rule, and an emulation takes long to
// prove anything.
func byHand() bool {
	for _, l := range Libraries {
		if os.Getenv(l.Variable) != "" {
			return true
		}
	}
	return false
}
