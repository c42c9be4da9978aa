// Output of ossrun serve on a terminal: a block with address and capabilities, then a short line
// for each request. Pipes and files get full sentences, the log and vLLM's words instead.

package cli

import (
	"context"
	"fmt"
	"github.com/ossrun/ossrun/ui/chat/term"
	"io"
	"log/slog"
	"strings"
	"time"
)

func (s *server) showBlock(lines []string) {
	var b strings.Builder
	m, w := s.Models.First(), columns(&b)
	fmt.Fprintf(w, "\nossrun serve · %s · %s\n", m.ID(), m.Device())
	users, key := "this computer only", "no key"
	if s.isPublic() {
		users = "other machines too"
	}
	if s.asksForKey() {
		key = "with a key"
	}
	fmt.Fprintf(w, "  API\t%s/v1  (%s, %s)\n", s.url(), users, key)
	fmt.Fprintf(w, "  Chat\t%s\n", s.url())
	if plan, ok := s.Models.Plan(); ok {
		fmt.Fprintf(w, "  Context\t%s tokens · %s of that length at once\n",
			term.Number(plan.Context), term.Count(max(plan.Sequences, 1), "conversation"))
		fmt.Fprintf(w, "  Memory\t%s now, up to %s under load, of %s free\n",
			gigabytes(plan.Total), gigabytes(max(plan.Ceiling, plan.Total)), gigabytes(plan.Free))
	} else {
		fmt.Fprintf(w, "  Tokens\t%s\n", strings.Join(lines, "; "))
	}
	if len(s.tools.Lines) > 0 {
		fmt.Fprintf(w, "  Tools\t%s\n", strings.Join(s.tools.Lines, " · "))
	}
	_ = w.Flush() // into memory
	_, _ = io.WriteString(s.terminal.Err,
		styled(s.terminal.Err, foldLines(b.String(), widthOf(s.terminal.Err))))
}

// showReady ends the block with lines to paste.
func (s *server) showReady() {
	if base, err := clientAddress(s.url()); err == nil && s.uds == "" {
		key := "none"
		if s.asksForKey() {
			key = "THE-KEY"
		}
		fmt.Fprintf(s.terminal.Err, "\n  export OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s\n"+
			"  ossrun launch codex        # or claude, opencode\n", base, key)
	}
	fmt.Fprintf(s.terminal.Err, "\nReady in %.1f s. Ctrl+C stops.\n\n",
		time.Since(s.start).Seconds())
}

// requestLines is the log on a terminal: short lines for requests, all attributes for others.
type requestLines struct {
	to io.Writer
	slog.Level
}

func (h requestLines) Enabled(_ context.Context, l slog.Level) bool { return l >= h.Level }
func (h requestLines) WithAttrs([]slog.Attr) slog.Handler           { return h } // none are used
func (h requestLines) WithGroup(string) slog.Handler                { return h }

func (h requestLines) Handle(_ context.Context, r slog.Record) error {
	attrs, line := map[string]slog.Value{}, r.Message
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value
		line += "  " + a.String()
		return true
	})
	if r.Message == "request" {
		path := strings.TrimPrefix(strings.TrimPrefix(attrs["path"].String(), "/"), "v1/")
		line = fmt.Sprintf("%d  %-18s", attrs["status"].Int64(), path)
		if fault, bad := attrs["error"]; bad {
			line += "  " + fault.String()
		} else {
			if prompt := attrs["prompt_tokens"].Int64(); prompt > 0 {
				line += fmt.Sprintf("  %d → %d tokens", prompt, attrs["completion_tokens"].Int64())
			}
			line += fmt.Sprintf("  %.2f s", float64(attrs["ms"].Int64())/1000)
		}
		if key, named := attrs["key"]; named {
			line += "  " + key.String()
		}
	}
	line = strings.NewReplacer("\n", " ", "\r", " ").Replace(line) // from paths or prompts
	_, err := fmt.Fprintf(cleanWriter{h.to}, "%s  %s\n", r.Time.Format(time.TimeOnly), line)
	return err
}
