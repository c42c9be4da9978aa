// ossrun batch: OpenAI's batch files on a local server.
//
// The lines are those of /v1/batches, but any server answers them, under several urls, and each
// result is in the output at once.
//
// What must stay true: a request's output line is written when it has ended, atomically, so that
// repeating the command resumes an interrupted batch; a refusal is a line too, as in OpenAI's
// files.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/measure/jsonlines"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
)

func batchCommand(t Terminal) *cli.Command {
	var base, model string
	atOnce := 16
	return &cli.Command{
		Name: "batch",
		Flags: flagTable(
			serverFlag(&base, "base-url"),
			textFlag(&model, "model"), pullFlag(),
			minFlag(&atOnce, "max-concurrency", 1)),
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return fail(exitUsage, "batch needs two files: ossrun batch INPUT.jsonl "+
					"OUTPUT.jsonl")
			}
			b := batch{c: c, model: model, atOnce: atOnce}
			if err := b.read(c.Args().Get(0), c.Args().Get(1)); err != nil {
				return err
			}
			if len(b.todo) == 0 {
				return b.run()
			}
			finder := local.ServerFinder{Caller: "batch", Model: model, MayStart: true,
				Report: notify(t), Fetch: fetchNamed(c, t, nil)}
			address, stop, err := finder.Find(c.Context, base)
			if err != nil {
				return errors.Join(err, b.out.Close())
			}
			defer stop()
			if b.client, err = client.New(address, portKey(address)); err != nil {
				return fail(exitUsage, "%s", err)
			}
			defer b.client.Close()
			return b.run()
		},
	}
}

type batch struct {
	c      *cli.Context
	client *client.Client
	model  string
	atOnce int
	todo   []responses.BatchLine
	done   int // lines that the output already had
	out    *jsonlines.File
}

// read reads the requests and drops those already in the output.
func (b *batch) read(input, output string) error {
	text, err := mapping.ReadText(input, mapping.MaxData)
	if err != nil {
		return fail(exitUsage, "%s", err)
	}
	all, fault := responses.ReadBatch(text, "")
	if fault != nil {
		return fail(exitUsage, "%s: line %d: %s", input, fault["line"], fault["message"])
	}
	done := map[string]bool{}
	b.out, err = jsonlines.Open(output, func(text []byte) error {
		id, _, err := responses.ReadResult(text)
		done[id] = true
		return err
	})
	if err != nil {
		return fail(exitUsage, "%s", err)
	}
	b.todo = slices.DeleteFunc(all, func(line responses.BatchLine) bool {
		return done[line.CustomID]
	})
	b.done = len(all) - len(b.todo)
	return nil
}

func (b *batch) run() error {
	bar, all := newCountBar(b.c, "requests"), len(b.todo)
	completed, refused := 0, 0
	err := jsonlines.ForEach(b.c.Context, all, b.atOnce, func(ctx context.Context,
		i int) func() error {
		r := b.ask(ctx, b.todo[i])
		if ctx.Err() != nil && !r.OK() {
			return nil // it was interrupted
		}
		return func() error {
			if completed++; !r.OK() {
				refused++
			}
			bar.count(completed, all)
			return b.out.Append(r) // fails on a full disk, for example
		}
	})
	bar.clear()
	err = errors.Join(err, b.out.Close())
	name := b.out.Name()
	switch {
	case err != nil:
		return fail(exitFailure, "%s: %s. Run the same command to resume", name, err)
	case b.c.Context.Err() != nil:
		fmt.Fprintf(b.c.App.ErrWriter, "interrupted: %d of %d requests are in %s. Run the "+
			"same command to resume\n", b.done+completed, b.done+all, name)
		return b.c.Context.Err()
	}
	fmt.Fprintf(b.c.App.ErrWriter, "requests: %d, new: %d, refused: %d, in %s\n",
		b.done+all, all, refused, name)
	if refused > 0 {
		return fail(exitFailure, "some requests were refused. Read the errors in %s", name)
	}
	return nil
}

// ask sends a request, with retries if the server is busy or gone.
func (b *batch) ask(ctx context.Context, line responses.BatchLine) *responses.BatchResult {
	body := withModel(line.Body, b.model)
	r := &responses.BatchResponse{StatusCode: http.StatusOK}
	err := client.RetryPolicy{Attempts: 6, Pause: time.Second}.Do(ctx, func() error {
		return b.client.Call(ctx, http.MethodPost, line.URL, []byte(body), &r.Body)
	})
	refused, isRefusal := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		var named struct{ ID string }
		_ = json.Unmarshal(r.Body, &named) // an answer may have no id
		r.RequestID = named.ID
	case isRefusal:
		r.StatusCode, r.RequestID = refused.Status, refused.RequestID
		r.Body, _ = json.Marshal(map[string]any{"error": map[string]string{
			"message": refused.Message, "type": refused.Type, "code": refused.Code,
			"param": refused.Param}})
	default:
		return line.NewResult(nil, &responses.BatchError{Code: "connection", Message: err.Error()})
	}
	return line.NewResult(r, nil)
}

func withModel(body json.RawMessage, model string) json.RawMessage {
	var members map[string]json.RawMessage
	if model == "" || json.Unmarshal(body, &members) != nil || members["model"] != nil {
		return body
	}
	members["model"], _ = json.Marshal(model)
	body, _ = json.Marshal(members) // valid JSON plus a string
	return body
}
