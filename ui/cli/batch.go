// ossrun batch: OpenAI's batch files on a local server.
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
	"os"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/runtime/measure/jsonlines"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/remote/local"
)

type batchResult struct {
	ID       string            `json:"id"`
	CustomID string            `json:"custom_id"`
	Response *batchResponse    `json:"response"`
	Error    map[string]string `json:"error"`
}

type batchResponse struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

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

	mu                 sync.Mutex
	completed, refused int
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
	inputInfo, err := os.Stat(input)
	outputInfo, statErr := os.Stat(output)
	if err == nil && statErr == nil && os.SameFile(inputInfo, outputInfo) {
		err = fail(exitUsage, "input and output are the same file")
	}
	if err != nil {
		return err
	}
	done := map[string]bool{}
	b.out, err = jsonlines.Open(output, func(text []byte) error {
		var line batchResult
		err := json.Unmarshal(text, &line)
		if err == nil && line.CustomID == "" {
			err = errors.New("it has no custom_id")
		}
		done[line.CustomID] = true
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
	running, ctx := errgroup.WithContext(b.c.Context)
	running.SetLimit(b.atOnce)
	for _, line := range b.todo {
		running.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			r := b.ask(ctx, line)
			b.mu.Lock()
			defer b.mu.Unlock()
			err := b.write(ctx, r) // a full disk, for example
			bar.count(b.completed, all)
			return err
		})
	}
	failed := running.Wait()
	bar.clear()
	err := errors.Join(failed, b.out.Close())
	name := b.out.Name()
	switch {
	case err != nil:
		return fail(exitFailure, "%s: %s. Run the same command to resume", name, err)
	case b.c.Context.Err() != nil:
		fmt.Fprintf(b.c.App.ErrWriter, "interrupted: %d of %d requests are in %s. Run the "+
			"same command to resume\n", b.done+b.completed, b.done+len(b.todo), name)
		return b.c.Context.Err()
	}
	fmt.Fprintf(b.c.App.ErrWriter, "%d requests, %d of them new, %d refused: %s\n",
		b.done+len(b.todo), len(b.todo), b.refused, name)
	if b.refused > 0 {
		return fail(exitFailure, "some requests were refused. Read the errors in %s", name)
	}
	return nil
}

// ask sends a request, with retries if the server is busy or gone, and returns its line.
func (b *batch) ask(ctx context.Context, line responses.BatchLine) batchResult {
	r := batchResult{ID: "batch_req_" + line.CustomID, CustomID: line.CustomID}
	body := line.Body
	if b.model != "" {
		body = withModel(body, b.model)
	}
	var answer json.RawMessage
	err := client.RetryPolicy{Attempts: 6, Pause: time.Second}.Do(ctx, func() error {
		return b.client.Call(ctx, http.MethodPost, line.URL, []byte(body), &answer)
	})
	refused, isRefusal := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		var named struct{ ID string }
		_ = json.Unmarshal(answer, &named) // an answer may have no id
		r.Response = &batchResponse{http.StatusOK, named.ID, answer}
	case isRefusal:
		text, _ := json.Marshal(map[string]any{"error": map[string]string{
			"message": refused.Message, "type": refused.Type, "code": refused.Code,
			"param": refused.Param}})
		r.Response = &batchResponse{refused.Status, refused.RequestID, text}
	default:
		r.Error = map[string]string{"code": "connection", "message": err.Error()}
	}
	return r
}

func withModel(body json.RawMessage, model string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members["model"] != nil {
		return body
	}
	members["model"], _ = json.Marshal(model)
	body, _ = json.Marshal(members) // valid JSON plus a string
	return body
}

// write writes a line, unless the request was interrupted. b.mu is held.
func (b *batch) write(ctx context.Context, r batchResult) error {
	ok := r.Response != nil && r.Response.StatusCode == http.StatusOK
	if ctx.Err() != nil && !ok {
		return nil
	}
	if err := b.out.Append(r); err != nil {
		return err
	}
	if b.completed++; !ok {
		b.refused++
	}
	return nil
}
