package worker

import (
	"strings"
	"testing"
)

// TestProven: what a card says of its kernels, a proof anew, and what it multiplies arrive on this side; a device that has no proofs says so.
func TestProven(t *testing.T) {
	d := opened(t, "proven", Options{})
	summary, wrong := d.Trusted()
	if summary != "machine code; 1 of 2 fast ones right" || len(wrong) != 1 || wrong[0] != "decode_down is wrong" {
		t.Errorf("%q, %q", summary, wrong)
	}
	if text, err := d.ProofsText(t.Context()); err != nil || string(text) != `[{"form":"decode_down"}]` {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := d.RatesText(); err != nil || string(text) != `[{"product":"bf16"}]` {
		t.Errorf("%s, %v", text, err)
	}
	plain := opened(t, "reader", Options{})
	if summary, wrong := plain.Trusted(); summary != "" || wrong != nil {
		t.Errorf("%q, %q", summary, wrong)
	}
	if _, err := plain.ProofsText(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot prove its kernels") {
		t.Errorf("%v", err)
	}
	if _, err := plain.RatesText(); err == nil || !strings.Contains(err.Error(), "cannot measure its matrix units") {
		t.Errorf("%v", err)
	}
}
