package multi

import (
	"errors"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// TestNoRoomIsTrue: the sentence has the deciding figures: those missing on the card, with the
// host or of the host, and that nearly full cards are too small one by one though together they are
// not.
func TestNoRoomIsTrue(t *testing.T) {
	const gib = int64(1) << 30
	many := make([]CardMemory, 8)
	for i := range many {
		many[i] = CardMemory{Free: gib * 3 / 2, Total: 140 * gib}
	}
	for name, x := range map[string]struct {
		s     models.Spec
		cards []CardMemory
		host  Host
		want  []string
		not   string
	}{
		"one card, the host could hold the experts": {models.Spec20B(), []CardMemory{{Free: 2 * gib}},
			Host{Free: 64 * gib},
			[]string{"it needs 4.",
				" GB on the GPU, even with all of its experts in the host's memory, and 1.6 GB " +
					"is there"}, " GPUs with "},
		"one card, no host": {models.Spec20B(), []CardMemory{{Free: 8 * gib}}, Host{},
			[]string{"it needs 1", " GB on the GPU and 8.1 GB is there; ",
				" of its experts would go to the host's memory, which has 0.0 GB"}, "even"},
		"nearly full cards": {models.Spec20B(), many, Host{Free: 64 * gib},
			[]string{"even with all of its experts",
				" and 8.6 GB is there, on 8 GPUs with 1.1 GB at most, where steps take "},
			"would go"},
		"the host's memory is the card's": {models.Spec120B(),
			[]CardMemory{{Free: 40 * gib, Shared: true}}, Host{Free: 40 * gib}, []string{"it needs 6",
				" GB on the GPU and 42.4 GB is there"}, "host's"},
	} {
		_, err := PlanFor(x.s, x.cards, x.host, engine.Settings{})
		var e *NoRoom
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", name, err)
		}
		at := 0
		for _, part := range x.want {
			i := strings.Index(err.Error()[at:], part)
			if i < 0 {
				t.Fatalf("%s: %q, want %q behind character %d", name, err, part, at)
			}
			at += i
		}
		if strings.Contains(err.Error(), x.not) {
			t.Errorf("%s: %q says %q", name, err, x.not)
		}
	}
}

// TestSharedIsCountedOnce: where the second card's memory is the host's, experts on the CPU and
// layers on that card are not given the same bytes.
func TestSharedIsCountedOnce(t *testing.T) {
	const gib = int64(1) << 30
	s := models.Spec120B()
	for _, shared := range []bool{false, true} {
		cards := []CardMemory{{Free: 24 * gib}, {Free: 20 * gib, Shared: shared}}
		p, err := PlanFor(s, cards, Host{Free: 30 * gib}, engine.Settings{})
		if (err != nil) != shared {
			t.Errorf("shared %v: %v, %+v", shared, err, p)
		}
		if err == nil && (p.HostUsed == 0 || p.HostUsed+p.Shares[1].Bytes() <= 30*gib) {
			t.Errorf("%d bytes with the host: the case shows nothing", p.HostUsed)
		}
		if _, err := PlanFor(s, cards, Host{Free: 64 * gib}, engine.Settings{}); err != nil {
			t.Errorf("shared %v, room for both: %v", shared, err)
		}
	}
}
