// ossrun chat PROMPT: one answer on stdout, as it is generated.
//
// What must stay true: stdout has only the answer, in a pipe as the model wrote it; everything else
// is on stderr.

package cli

import (
	"context"
	"encoding/json"
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
	palette := term.Palette{NoColor: o.NoColor, Theme: o.Theme}
	screen := newOnceScreen(t, o.Notices, palette, c.Bool("plain"))
	defer screen.close()
	turn, err := session.StartWithTools(c.Context, o.Model, r, o.Tools, session.ToolOptions{})
	if err != nil {
		return err
	}
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		question.Take(e)
		switch e := e.(type) {
		case session.Reasoning:
			if screen.wait("Thinking"); show {
				screen.push(reasoningText, e.Text)
			}
		case session.Commentary:
			if show {
				screen.push(reasoningText, e.Text)
			}
		case session.CallEnd:
			screen.finish()
			screen.wait("Running a tool")
		case session.Answer:
			if screen.wait("Writing"); asJSON {
				continue
			}
			if err := screen.push(answerText, e.Text); err != nil {
				return fail(exitFailure, "writing the answer: %s", err)
			}
		case session.ToolEnd:
			if show || e.Err != nil {
				screen.note(toolLine(e, turn.Result()))
			}
			screen.wait("Reading")
		}
	}
	res := turn.Result()
	if asJSON {
		u := res.Done.Usage
		out := onceResult{o.Model.ID(), res.Answer, res.Reasoning, res.Done.Finish,
			onceUsage{u.Prompt, u.Completion, u.Reasoning}, res.Citations}
		screen.begin(answerText)
		err = json.NewEncoder(t.Out).Encode(out)
	} else if err = screen.end(); err == nil {
		screen.note(sourceLines(res)...)
	}
	if err != nil {
		return fail(exitFailure, "writing the answer: %s", err)
	}
	screen.close()
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
