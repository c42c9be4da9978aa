package cli

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestEveryFlagIsRefusedInOurWords: each flag of each verb that is no text, with a value that it
// cannot have: the flag is named as it is written, with what it needs, and nothing of the parser's.
func TestEveryFlagIsRefusedInOurWords(t *testing.T) {
	var out strings.Builder
	app, tried := newApp(Terminal{Out: &out, Err: &out}), 0
	for _, verb := range app.Commands {
		for _, cmd := range append([]*cli.Command{verb}, verb.Subcommands...) {
			words := []string{"ossrun", verb.Name}
			if cmd != verb {
				words = append(words, cmd.Name)
			}
			for _, f := range cmd.Flags {
				switch f.(type) {
				case *cli.StringFlag, *cli.StringSliceFlag, *worded:
					continue
				}
				tried++
				for _, value := range []string{"hot", "", "1:2", `a "b"`, "99999999999999999999x"} {
					name := f.Names()[0]
					var told strings.Builder
					code := Run(t.Context(), append(words, "--"+name+"="+value),
						Terminal{In: strings.NewReader(""), Out: &told, Err: &told})
					text := told.String()
					if code != exitUsage || !strings.HasPrefix(text, "ossrun: "+dashed(name)+" must ") ||
						strings.Count(text, "\n") != 1 {
						t.Errorf("%s --%s=%s: %d, %s", words, name, value, code, text)
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d flags", tried)
	}
}
