// ossrun chat PROMPT: one answer on stdout, as it is generated.
//
// What must stay true: stdout has only the answer, in a pipe as the model wrote it; the progress
// line is shown only on a terminal's stderr, and vanishes.

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	xterm "github.com/charmbracelet/x/term"
	"github.com/muesli/termenv"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat"
	"github.com/ossrun/ossrun/ui/chat/term"
)

type onceResult struct {
	Model     string             `json:"model"`
	Answer    string             `json:"answer"`
	Reasoning string             `json:"reasoning"`
	Finish    session.Finish     `json:"finish_reason"`
	Usage     onceUsage          `json:"usage"`
	Citations []session.Citation `json:"citations,omitempty"`
}

type onceUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Reasoning  int `json:"reasoning_tokens"`
}

func answerOnce(c *cli.Context, t Terminal, o chat.Options, prompt string) error {
	o.Request.Params.Logprobs = -1
	question, r := chat.Ask(c.Context, o, prompt)
	defer question.Close()
	asJSON, show := c.Bool("json"), c.Bool("show-reasoning")
	var page *chat.Page
	if width, height, ok := screenOf(t.Out); ok && !asJSON {
		page = chat.NewPage(t.Out, term.Palette{NoColor: o.NoColor, Theme: o.Theme}, width, height)
	}
	progress := t.Err
	if show {
		progress = nil
	}
	waitsOn, endWait := startWaiting(progress)
	defer endWait()
	turn, err := session.StartWithTools(c.Context, o.Model, r, o.Tools, session.ToolOptions{})
	if err != nil {
		return err
	}
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		question.Take(e)
		switch e := e.(type) {
		case session.Reasoning:
			waitsOn("Thinking")
			if show {
				fmt.Fprint(t.Err, printable(e.Text, isTerminal(t.Err)))
			}
		case session.CallEnd:
			waitsOn("Running a tool")
		case session.Answer:
			if waitsOn("Writing"); isTerminal(t.Out) {
				endWait()
			}
			switch {
			case page != nil:
				err = page.Push(e.Text)
			case !asJSON:
				_, err = io.WriteString(t.Out, printable(e.Text, isTerminal(t.Out)))
			}
			if err != nil {
				return fail(exitFailure, "writing the answer: %s", err)
			}
		case session.ToolEnd:
			if show || e.Err != nil {
				endWait()
				fmt.Fprintf(t.Err, "\n%s\n", printable(toolLine(e, turn.Result()), true))
			}
		}
	}
	endWait()
	res := turn.Result()
	if show && res.Reasoning != "" {
		fmt.Fprintln(t.Err)
	}
	switch {
	case asJSON:
		u := res.Done.Usage
		out := onceResult{o.Model.ID(), res.Answer, res.Reasoning, res.Done.Finish,
			onceUsage{u.Prompt, u.Completion, u.Reasoning}, res.Citations}
		err = json.NewEncoder(t.Out).Encode(out)
	case page != nil:
		err = page.End()
	case res.Answer != "" && !strings.HasSuffix(res.Answer, "\n"):
		_, err = fmt.Fprintln(t.Out)
	}
	if err != nil {
		return fail(exitFailure, "writing the answer: %s", err)
	}
	if !asJSON {
		printSources(t, res)
	}
	if err := question.Save(res); err != nil {
		t.report("This conversation was not saved: %s.", err)
	}
	switch res.Done.Finish {
	case session.FinishCancelled:
		return context.Canceled
	case session.FinishError:
		return fail(exitFailure, "%s", res.Done.Err)
	case session.FinishLength, session.FinishLoop:
		why := "--max-tokens or the context is used up"
		if res.Done.Err != nil {
			why = res.Done.Err.Error()
		}
		if res.Answer == "" {
			return fail(exitCut, "the answer was cut before it began: %s", why)
		}
		t.report("the answer was cut: %s", why)
	}
	return nil
}

// screenOf is the size of a terminal that can redraw rows.
func screenOf(out io.Writer) (width, height int, ok bool) {
	f, isFile := out.(*os.File)
	if !isFile || !isTerminal(f) || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	width, height, err := xterm.GetSize(f.Fd())
	if err == nil { // Windows consoles need this for escape sequences
		_, err = termenv.EnableVirtualTerminalProcessing(termenv.NewOutput(f))
	}
	return width, height, err == nil && width > 0
}

// waitShown is the interval of the progress line, and the shortest wait with one.
const waitShown = 400 * time.Millisecond

// startWaiting shows on a terminal what an answer waits for, until end.
func startWaiting(out io.Writer) (show func(what string), end func()) {
	if _, _, ok := screenOf(out); !ok {
		return func(string) {}, func() {}
	}
	var what atomic.Value
	what.Store("Reading")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		start, tick := time.Now(), time.NewTicker(waitShown)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				_, _ = io.WriteString(out, "\r\x1b[K")
				return
			case now := <-tick.C:
				fmt.Fprintf(out, "\r\x1b[K%s, %.0f s. Ctrl+C stops.", what.Load(),
					now.Sub(start).Seconds())
			}
		}
	}()
	return func(to string) { what.Store(to) }, sync.OnceFunc(func() {
		close(stop)
		<-done
	})
}
