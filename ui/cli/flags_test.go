package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestEveryFlagIsRefusedInOurWords: each flag of each verb that is no text, with a value that it
// cannot have: the flag is named as it is written, with what it needs, and nothing of the parser's.
func TestEveryFlagIsRefusedInOurWords(t *testing.T) {
	app, tried := newApp(Terminal{Out: io.Discard, Err: io.Discard}), 0
	for _, verb := range app.Commands {
		for _, cmd := range append([]*cli.Command{verb}, verb.Subcommands...) {
			words := []string{verb.Name}
			if cmd != verb {
				words = append(words, cmd.Name)
			}
			for _, f := range cmd.Flags {
				switch f.(type) {
				case *cli.StringFlag, *cli.StringSliceFlag, *wordFlag:
					continue
				}
				tried++
				others := []string{"", "1:2", `a "b"`, "99999999999999999999x"}
				for _, value := range []string{"hot", others[tried%len(others)]} {
					name := f.Names()[0]
					code, out, text := runHere(t.Context(), append(words, "--"+name+"="+value)...)
					if code != exitUsage || out != "" ||
						!strings.HasPrefix(text, "ossrun: "+dashed(name)+" must ") ||
						strings.Count(text, "\n") != 1 {
						t.Errorf("%s --%s=%s: %d, %s", words, name, value, code, text)
					}
				}
			}
		}
	}
	if tried < 100 { // each type of flag has all values
		t.Errorf("%d flags", tried)
	}
}
