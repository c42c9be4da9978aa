// The joining side: a server's model as a runner.

package local

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// endTimeout limits a cancelled turn's wait for its Done, and the wait for a server's end.
const endTimeout = 5 * time.Second

func (c *Client) goneError(err error) error {
	return fmt.Errorf("%w (process %d): %w", session.ErrGone, c.Server.PID, err)
}

// Client starts turns of one model of a server.
type Client struct {
	Server Server
	Model  Model
}

func (c *Client) ID() string     { return c.Model.Name }
func (c *Client) Source() string { return c.Model.Source }

func (c *Client) Device() string { return c.Model.Device }

// ContextLength is in tokens, prompt and answer together.
func (c *Client) ContextLength() int { return c.Model.Context }

// Refresh returns the client with the model's current state.
func (c *Client) Refresh(ctx context.Context) (*Client, error) {
	st, err := askStatus(ctx, c.Server.Path)
	if err != nil {
		return nil, c.goneError(err)
	}
	now := &Client{Server: Server{c.Server.Path, st}, Model: c.Model}
	for _, m := range st.Models {
		if m.Name == c.Model.Name {
			now.Model = m
		}
	}
	return now, nil
}

// Close does nothing: the server keeps running.
func (c *Client) Close() error { return nil }

// Start starts a turn. Cancelling ctx ends it with a Done.
func (c *Client) Start(ctx context.Context, r session.Request) (session.Turn, error) {
	if r.Final != nil {
		return nil, &session.RequestError{Param: "final",
			Msg: "the form of an answer cannot be asked for through the socket; use the server's " +
				"port"}
	}
	conn, err := dial(ctx, c.Server.Path)
	if err != nil {
		return nil, c.goneError(err)
	}
	t := &clientTurn{ctx: ctx, conn: conn, read: json.NewDecoder(conn)}
	write := json.NewEncoder(conn)
	write.SetEscapeHTML(false)
	if err = write.Encode(order{Do: doTurn, Model: c.Model.Name, Request: &r}); err != nil {
		conn.Close()
		return nil, c.goneError(err)
	}
	t.stop = context.AfterFunc(ctx, func() {
		_ = write.Encode(order{Do: doCancel}) // a broken connection cancels too
		_ = conn.SetReadDeadline(time.Now().Add(endTimeout))
	})
	var first turnLine
	if err := t.read.Decode(&first); err != nil {
		t.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, c.goneError(err)
	}
	if first.Refused != nil {
		t.close()
		return nil, first.Refused.err()
	}
	return t, nil
}

type clientTurn struct {
	ctx    context.Context
	conn   net.Conn
	read   *json.Decoder
	stop   func() bool
	result session.Result
	done   bool
}

// Next blocks for the next event; it returns false after Done was delivered.
func (t *clientTurn) Next() (session.Event, bool) {
	if t.done {
		return nil, false
	}
	for {
		var line turnLine
		if err := t.read.Decode(&line); err != nil {
			return t.fail(err), true
		}
		if line.Result != nil {
			t.result = *line.Result
			t.result.Done.Err = line.Err.err()
			t.close()
			return t.result.Done, true
		}
		if e := line.event(); e != nil {
			t.note(e)
			return e, true
		}
	}
}

func (t *clientTurn) fail(err error) session.Event {
	t.close()
	t.result.Done = session.Done{Finish: session.FinishError,
		Err: fmt.Errorf("%w: %w", session.ErrGone, err)}
	if t.ctx.Err() != nil {
		t.result.Done = session.Done{Finish: session.FinishCancelled}
	}
	if t.result.Answer != "" {
		t.result.Messages = append(t.result.Messages, session.AssistantAnswer(t.result.Answer))
	}
	return t.result.Done
}

func (t *clientTurn) close() {
	t.done = true
	t.stop()
	t.conn.Close()
}

// note collects the events into the result, for Result before the end.
func (t *clientTurn) note(e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		t.result.Reasoning += e.Text
	case session.Commentary:
		t.result.Commentary += e.Text
	case session.Answer:
		t.result.Answer += e.Text
	case session.CallStart:
		t.result.Calls = append(t.result.Calls, session.Call{ID: e.ID, Name: e.Name,
			Recipient: e.Recipient})
	case session.CallArguments:
		if e.Index < len(t.result.Calls) {
			t.result.Calls[e.Index].Arguments += e.Text
		}
	case session.CallEnd:
		if e.Index < len(t.result.Calls) {
			t.result.Calls[e.Index].Arguments = e.Arguments
		}
	}
}

// Result is the result so far; complete once Next has returned Done.
func (t *clientTurn) Result() session.Result { return t.result }

// Sampled is nil: the tokens arrive when the turn has ended.
func (t *clientTurn) Sampled() []int32 { return nil }
