package cli

import (
	"slices"
	"testing"
	"time"
)

// The title says how far a prompt is and what is left, then goes back, and is silent in between.
func TestLaunchTitle(t *testing.T) {
	var p prefill
	var got []string
	start := time.Unix(0, 0)
	for i, left := range []float64{0, 800, 600, 200, 0, 0, 500, 900, 450, 0} {
		got = append(got, p.title(left, start.Add(time.Duration(i)*10*time.Second)))
	}
	if want := []string{"", "ossrun: prompt 0 %", "ossrun: prompt 25 %, 30s left",
		"ossrun: prompt 75 %, 7s left", "ossrun", "", "ossrun: prompt 0 %", "ossrun: prompt 0 %",
		"ossrun: prompt 50 %, 10s left", "ossrun"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	text := "# HELP ossrun:prompt_tokens_unread x\nossrun:prompt_tokens_unread{model_name=\"a\"} 40\n" +
		"ossrun:prompt_tokens_unread{model_name=\"b\"} 2\nossrun:other 7\n"
	if n := unreadTokens([]byte(text)); n != 42 {
		t.Error(n)
	}
}
