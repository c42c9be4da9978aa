package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// scripted is a device whose proofs are given.
type scripted struct {
	proofs   []Proof
	err      error
	proved   int
	disabled []Variant
	timings  []Timing
	untimed  error
	timed    int
	chosen   []Timing
}

func (s *scripted) Prove(context.Context, func(Trial)) ([]Proof, error) {
	s.proved++
	return s.proofs, s.err
}
func (s *scripted) Tune(context.Context) ([]Timing, error) {
	s.timed++
	return s.timings, s.untimed
}
func (s *scripted) Choose(list []Timing) { s.chosen = list }
func (s *scripted) Disable(f ...Variant) { s.disabled = append(s.disabled, f...) }

var outcome = []Proof{{Variant: Attend, OK: true}, {Variant: DecodeDown, Why: "x differs"}}

// TestRecord: a record is read by the next start of the same program on the same card,
// and by no other.
func TestRecord(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "records")
	about := Verification{Card: "H200, sm_90", Driver: "CUDA 12080", Kernels: "machine code sm_90a",
		Program: "1"}
	first := &scripted{proofs: outcome, timings: []Timing{{"experts", 8, StreamExperts,
		1.5, 2, true}}}
	got := verify(t.Context(), folder, about, first)
	if first.proved != 1 || first.timed != 1 || got.recorded ||
		!slices.Equal(first.chosen, first.timings) {
		t.Errorf("proved %d times, %+v", first.proved, got)
	}
	if summary, wrong := got.summarise("k"); summary != "k; 1 of 2 fast kernels right on this GPU, "+
		"proved now" || len(wrong) != 1 ||
		!strings.Contains(wrong[0], "decode_down is wrong on this GPU") {
		t.Errorf("%s, %q", summary, wrong)
	}
	again := &scripted{}
	got = verify(t.Context(), folder, about, again)
	if again.proved+again.timed != 0 || !slices.Equal(again.disabled, []Variant{DecodeDown}) ||
		!slices.Equal(again.chosen, first.timings) {
		t.Errorf("proved %d times, out of use: %v, chosen: %v", again.proved, again.disabled,
			again.chosen)
	}
	if summary, wrong := got.summarise("k"); !strings.HasPrefix(summary,
		"k; 1 of 2 fast kernels right on this GPU, as proved on 20") || len(wrong) != 1 {
		t.Errorf("%s, %q", summary, wrong)
	}
	for _, other := range []Verification{{"H100, sm_90", about.Driver, about.Kernels, "1",
		about.When, nil, nil, "", false, nil},
		{about.Card, "CUDA 13000", about.Kernels, "1", about.When, nil, nil, "", false, nil},
		{about.Card, about.Driver, "PTX sm_90a", "1", about.When, nil, nil, "", false, nil},
		{about.Card, about.Driver, about.Kernels, "2", about.When, nil, nil, "", false, nil}} {
		s := &scripted{proofs: outcome}
		if verify(t.Context(), folder, other, s); s.proved != 1 {
			t.Errorf("%+v takes the record of %+v", other, about)
		}
	}
}

// TestEarlierRelease: a record as an earlier release wrote it is read by the program that it is
// for, and one of another program does not change it.
func TestEarlierRelease(t *testing.T) {
	folder := t.TempDir()
	hosttest.Check(t, os.CopyFS(folder, os.DirFS("../../testdata/versions/gpu")))
	about := Verification{Card: "H200, sm_90", Driver: "CUDA 12080",
		Kernels: "machine code sm_90a", Program: "1"}
	before := hosttest.Must(os.ReadFile(about.file(folder)))(t)
	s := &scripted{proofs: outcome}
	if got := verify(t.Context(), folder, about, s); s.proved != 0 || !got.recorded ||
		!slices.Equal(s.disabled, []Variant{DecodeDown}) {
		t.Errorf("proved %d times, %+v, out of use: %v", s.proved, got, s.disabled)
	}
	later := about
	later.Program = "2"
	s = &scripted{proofs: outcome}
	if verify(t.Context(), folder, later, s); s.proved != 1 {
		t.Errorf("proved %d times", s.proved)
	}
	if now, err := os.ReadFile(about.file(folder)); err != nil || string(now) != string(before) {
		t.Errorf("the earlier record is another: %v", err)
	}
}

// breaking is a card that is lost to a variant until that is out of use.
type breaking struct {
	scripted
	breaks []Variant
	opened int
}

func (b *breaking) Prove(ctx context.Context, report func(Trial)) ([]Proof, error) {
	for _, f := range b.breaks {
		if !slices.Contains(b.disabled, f) {
			return nil, &CrashError{Variants: []Variant{f}, Err: errors.New("misaligned address")}
		}
	}
	return b.scripted.Prove(ctx, report)
}

// TestLostCard: variants that lose the card are wrong, the card is opened again for each, and the
// outcome is kept like any other.
func TestLostCard(t *testing.T) {
	folder := t.TempDir()
	about := Verification{Card: "card"}
	b := &breaking{scripted: scripted{proofs: outcome}, breaks: []Variant{DecodeQKV, PrefillAttend}}
	got := verify(t.Context(), folder, about,
		&reopeningCard{b, func() (variants, error) { b.opened++; b.disabled = nil; return b, nil }})
	if _, wrong := got.summarise("k"); b.opened != 2 || len(got.Proofs) != 4 || len(wrong) != 3 ||
		wrong[0] != "decode_qkv is wrong on this GPU, slower kernels take its place: the GPU "+
			"was lost: misaligned address" {
		t.Errorf("opened %d times, %q", b.opened, wrong)
	}
	next := &scripted{}
	verify(t.Context(), folder, about, next)
	if next.proved != 0 || !slices.Equal(next.disabled, []Variant{DecodeQKV, PrefillAttend,
		DecodeDown}) {
		t.Errorf("proved %d times, out of use: %v", next.proved, next.disabled)
	}
}

// TestCardStaysLost: one that does not open again, and one that is lost to a variant that is out of
// use, are listed.
func TestCardStaysLost(t *testing.T) {
	b := &breaking{breaks: []Variant{DecodeQKV}}
	got := verify(t.Context(), "", Verification{},
		&reopeningCard{b, func() (variants, error) { return b, errors.New("it stays away") }})
	if got.failed == nil || !strings.Contains(got.failed.Error(),
		"open the GPU again: it stays away") {
		t.Errorf("%v", got.failed)
	}
	if got := verify(t.Context(), "", Verification{},
		&reopeningCard{b, func() (variants, error) {
			b.opened++
			return &forgetful{b},
				nil
		}}); got.failed == nil || b.opened != 1 {
		t.Errorf("opened %d times, %v", b.opened, got.failed)
	}
}

// forgetful takes nothing out of use.
type forgetful struct{ *breaking }

func (*forgetful) Disable(...Variant) {}

// TestReopen: a card that a kernel has lost is opened again in this process, unless something is on
// it.
func TestReopen(t *testing.T) {
	f := hosttest.Must(drivertest.Open(driver.CUDA, drivertest.Machine{}))(t)
	t.Setenv("OSSRUN_LIBCUDA", f.Path)
	t.Setenv("OSSRUN_LIBAMDHIP64", "/nowhere/lib.so")
	c := hosttest.Must(OpenCard(nil))(t)
	f.Break("matrix_rate")
	if _, err := c.Device.Prove(t.Context(), func(Trial) {}); !errors.Is(err, driver.ErrLost) {
		t.Fatal(err)
	}
	f.Break("")
	hosttest.Check(t, c.reopen())
	r := hosttest.Must(c.Alloc(64))(t)
	if err := c.reopen(); err == nil ||
		!strings.Contains(err.Error(), "1 regions and steps in use") {
		t.Errorf("opened again under a region: %v", err)
	}
	hosttest.Check(t, errors.Join(r.Free(), c.Close()))
}

// TestDamagedRecord: an invalid record, or another card's under this name, is rewritten.
func TestDamagedRecord(t *testing.T) {
	folder := t.TempDir()
	about := Verification{Card: "card"}
	for _, text := range []string{"", "{", "null",
		`{"card":"another","proofs":[{"variant":"decode_down","ok":true}]}`, `{"card":"card"}`} {
		hosttest.Check(t, os.WriteFile(about.file(folder), []byte(text), 0o666))
		s := &scripted{proofs: outcome}
		if verify(t.Context(), folder, about, s); s.proved != 1 {
			t.Errorf("%q is taken", text)
		}
		s = &scripted{proofs: outcome}
		if verify(t.Context(), folder, about, s); s.proved != 0 {
			t.Errorf("%q stays", text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestProofThatDoesNotRun: it is reported, and not kept.
func TestProofThatDoesNotRun(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		s := &scripted{err: errors.New("the card is gone")}
		got := verify(t.Context(), folder, Verification{Card: "card"}, s)
		if summary, wrong := got.summarise("k"); s.proved != 1 ||
			summary != "k; not proved on this GPU: the card is gone" || len(wrong) != 1 {
			t.Errorf("%d, %s, %q", s.proved, summary, wrong)
		}
	}
}

// TestNoPlaceForRecords: a folder that cannot be made is no reason not to compute.
func TestNoPlaceForRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	hosttest.Check(t, os.WriteFile(file, nil, 0o666))
	s := &scripted{proofs: outcome[:1]}
	got := verify(t.Context(), filepath.Join(file, "x"), Verification{}, s)
	if summary, wrong := got.summarise("k"); summary != "k; 1 of 1 fast kernels right on this GPU, "+
		"proved now" || wrong != nil {
		t.Errorf("%s, %q", summary, wrong)
	}
}

// TestAbout: a record is for a card, a driver, an image and a build.
func TestAbout(t *testing.T) {
	f := hosttest.Must(drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Fake RTX",
		Major: 8, Minor: 9, Memory: 1 << 30}))(t)
	defer f.Close()
	t.Setenv("OSSRUN_LIBCUDA", f.Path)
	t.Setenv("OSSRUN_LIBAMDHIP64", "")
	c := hosttest.Must(OpenCard(nil))(t)
	about := c.identity()
	if about.Card != "Fake RTX, sm_89" || !strings.HasPrefix(about.Driver, "CUDA 1") ||
		about.Kernels != "machine code sm_89" || len(about.Program) != 16 {
		t.Errorf("%+v", about)
	}
	folder := t.TempDir()
	t.Setenv("OSSRUN_UNPROVED", "1")
	c.Verify(t.Context(), folder)
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if summary, wrong := c.Verified(); summary != "machine code sm_89"+
		neverRun("machine code sm_89") || wrong != nil {
		t.Errorf("%s, %q", summary, wrong)
	}
	t.Setenv("OSSRUN_UNPROVED", "") // a library that was named by hand is proved like any other
	ctx, stop := context.WithCancel(t.Context())
	stop() // at the first of its trials, of which each takes a second
	c.Verify(ctx, folder)
	if summary, _ := c.Verified(); !strings.HasSuffix(summary,
		"not proved on this GPU: context canceled") {
		t.Error(summary)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if left := f.Leaks(); left != "" {
		t.Error(left)
	}
}

// TestTimesThatFail: they are said. The record keeps what was timed, and that a way loses the card;
// a lack of memory may have passed at the next start.
func TestTimesThatFail(t *testing.T) {
	full := errors.New("no memory")
	one := []Timing{{"experts", 8, StreamExperts, 1.5, 2, true}}
	for name, x := range map[string]struct {
		list []Timing
		err  error
		kept bool
	}{"some": {one, full, true}, "none": {nil, full, false}, "lost": {nil, driver.ErrLost, true}} {
		t.Run(name, func(t *testing.T) {
			folder, about, opened := t.TempDir(), Verification{Card: "H200"}, &scripted{}
			card := &reopeningCard{&scripted{proofs: outcome, timings: x.list, untimed: x.err},
				func() (variants, error) { return opened, nil }}
			got := verify(t.Context(), folder, about, card)
			if text, _ := got.summarise("k"); !strings.Contains(text, "not all timed: ") {
				t.Error(text)
			}
			if lost := slices.Equal(opened.disabled, []Variant{DecodeDown}); lost !=
				(x.err == driver.ErrLost) {
				t.Errorf("the card that was opened again has lost %v", opened.disabled)
			}
			next := &scripted{proofs: outcome}
			if verify(t.Context(), folder, about, next); (next.timed == 0) != x.kept ||
				!slices.Equal(next.chosen, x.list) && x.kept {
				t.Errorf("timed %d times, %v", next.timed, next.chosen)
			}
		})
	}
}
