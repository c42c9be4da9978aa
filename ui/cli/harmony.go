// ossrun harmony: tokenizer, renderer and parser as JSON lines, for scripts, other tools, and
// comparison with other implementations.
//
// What must stay true: one output line for each input line, in order and without delay, so that it
// can serve a pipe; an invalid line does not stop the rest.

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
)

const harmonyHelp = `Reads JSON lines from FILE, or from standard input, and writes one JSON line for each as soon as it
is done. A line that cannot be read gives {"error": "line N: ..."}; the other lines are read, and
the exit code is 1 at the end.`

func harmonyCommand() *cli.Command {
	verbs := []struct {
		name   string
		answer func([]byte) (any, error)
	}{
		{"encode", encodeLine}, {"decode", decodeLine},
		{"render", renderLine}, {"parse", parseLine},
	}
	var names []string
	var commands []*cli.Command
	for _, v := range verbs {
		names = append(names, v.name)
		commands = append(commands, &cli.Command{Name: v.name, Description: harmonyHelp,
			Action: func(c *cli.Context) error { return answerLines(c, v.answer) }})
	}
	return &cli.Command{
		Name:        "harmony",
		Description: harmonyHelp,
		Subcommands: commands,
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return fail(exitUsage, "%s", unknown("command", name, models.Nearest(name, names),
					"ossrun harmony --help"))
			}
			return fail(exitUsage, "harmony needs a command: encode, decode, render or parse")
		},
	}
}

func answerLines(c *cli.Context, answer func([]byte) (any, error)) error {
	in := c.App.Reader
	if c.Args().Len() > 1 {
		return fail(exitUsage, "harmony %s takes one FILE", c.Command.Name)
	}
	if name := c.Args().First(); name != "" && name != "-" {
		f, err := mapping.OpenText(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	done := make(chan error, 1)
	go func() { // so that an interrupt ends the verb while it waits for input
		done <- answerEach(c.Context, in, c.App.Writer, answer)
	}()
	select {
	case err := <-done:
		return err
	case <-c.Context.Done():
		return c.Context.Err()
	}
}

func answerEach(ctx context.Context, in io.Reader, out io.Writer,
	answer func([]byte) (any, error)) error {
	write := json.NewEncoder(out)
	write.SetEscapeHTML(false) // special tokens stay readable
	total, bad := 0, 0
	read := bufio.NewScanner(in)
	read.Buffer(nil, math.MaxInt)
	for read.Scan() && ctx.Err() == nil {
		total++
		out, err := answer(bytes.TrimRight(read.Bytes(), "\r"))
		if err != nil {
			bad++
			out = object{"error": fmt.Sprintf("line %d: %s", total, err)}
		}
		if err := write.Encode(out); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
	}
	switch {
	case read.Err() != nil:
		return fmt.Errorf("reading: %w", read.Err())
	case bad > 0:
		return fail(exitFailure, "%d of %d lines could not be read", bad, total)
	}
	return nil
}

// object is an answer with keys in alphabetical order.
type object = map[string]any

// maxRepeat is how many bytes unit and count may make.
const maxRepeat = 1 << 28

func encodeLine(line []byte) (any, error) {
	var in struct {
		Text    *string
		Unit    *string
		Count   int
		Bytes   *string `json:"bytes_b64"`
		Special json.RawMessage
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, err
	}
	ids, t := []int32{}, token.Get()
	if in.Bytes != nil {
		if in.Text != nil || in.Unit != nil || in.Special != nil {
			return nil, errors.New("bytes_b64 stands alone")
		}
		b, err := base64.StdEncoding.DecodeString(*in.Bytes)
		if err != nil {
			return nil, fmt.Errorf("bytes_b64: %w", err)
		}
		return object{"ids": t.EncodeBytes(ids, b)}, nil
	}
	if (in.Text == nil) == (in.Unit == nil) {
		return nil, errors.New("one of text, unit and bytes_b64 is needed")
	}
	text := in.Text
	if in.Unit != nil {
		if in.Count < 0 || in.Count > maxRepeat/max(1, len(*in.Unit)) {
			return nil, fmt.Errorf("count is not between 0 and %d bytes' worth", maxRepeat)
		}
		repeated := strings.Repeat(*in.Unit, in.Count)
		text = &repeated
	}
	special, allowed, err := allowedSpecials(in.Special)
	switch {
	case err != nil:
		return nil, err
	case special:
		return object{"ids": t.EncodeSpecial(ids, *text, allowed)}, nil
	}
	return object{"ids": t.Encode(ids, *text)}, nil
}

// allowedSpecials reads true, false or a list of names. A nil allowed means all.
func allowedSpecials(raw json.RawMessage) (special bool, allowed func(string) bool, err error) {
	if raw == nil || json.Unmarshal(raw, &special) == nil {
		return special, nil, nil
	}
	var names []string
	if json.Unmarshal(raw, &names) != nil {
		return false, nil, errors.New("special is neither true, false nor a list of names")
	}
	set := map[string]bool{}
	for _, name := range names {
		if _, ok := token.Get().SpecialID(name); !ok {
			return false, nil, fmt.Errorf("no special token is named %s", name)
		}
		set[name] = true
	}
	return true, func(name string) bool { return set[name] }, nil
}

func decodeLine(line []byte) (any, error) {
	var in struct{ IDs []uint32 }
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, err
	}
	if in.IDs == nil {
		return nil, errors.New("ids are missing")
	}
	for _, id := range in.IDs {
		if id >= token.VocabSize {
			return nil, fmt.Errorf("id %d is outside the vocabulary", id)
		}
	}
	b := token.Get().Decode(nil, toInt32(in.IDs))
	return struct {
		Text  string `json:"text"`
		Bytes string `json:"bytes_b64"`
	}{token.Text(b), base64.StdEncoding.EncodeToString(b)}, nil
}

func toInt32(ids []uint32) []int32 {
	return mapSlice(ids, func(id uint32) int32 { return int32(id) })
}

func renderLine(line []byte) (any, error) {
	in := struct {
		Messages json.RawMessage
		Next     harmony.Role `json:"next_turn_role"`
		Fn       string
		AutoDrop bool `json:"auto_drop_analysis"`
	}{Next: harmony.RoleAssistant, Fn: "render_conversation_for_completion", AutoDrop: true}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, err
	}
	if in.Messages == nil {
		return nil, errors.New("messages are missing")
	}
	var messages []harmony.Message
	if err := json.Unmarshal(in.Messages, &messages); err != nil {
		return object{"error": err.Error()}, nil
	}
	var ids []int32
	var err error
	switch in.Fn {
	case "render_conversation_for_completion":
		ids, err = harmony.RenderCompletion(messages, in.Next, in.AutoDrop)
	case "render_conversation":
		ids, err = harmony.Render(messages, in.AutoDrop)
	case "render_conversation_for_training":
		ids, err = harmony.RenderTraining(messages, in.AutoDrop)
	default:
		return nil, fmt.Errorf("unknown fn %q", in.Fn)
	}
	if err != nil {
		return object{"error": err.Error()}, nil
	}
	return object{"ids": ids, "text": token.Text(token.Get().Decode(nil, ids))}, nil
}

func parseLine(line []byte) (any, error) {
	var in struct {
		IDs    []uint32
		Role   *harmony.Role
		Strict json.RawMessage
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, err
	}
	if in.IDs == nil {
		return nil, errors.New("ids are missing")
	}
	role, strict := harmony.Role(""), true
	if in.Role != nil {
		if role = *in.Role; !role.IsValid() {
			return object{"error": fmt.Sprintf("unknown role: %q", role)}, nil
		}
	}
	// a case of testdata/harmony may be used unchanged: its strict is an object, the result
	if in.Strict != nil && in.Strict[0] != '{' {
		if err := json.Unmarshal(in.Strict, &strict); err != nil {
			return nil, errors.New("strict is neither true nor false")
		}
	}
	if !strict {
		return parseAny(toInt32(in.IDs), role), nil
	}
	messages, err := harmony.ReadLegal(toInt32(in.IDs), role)
	if err != nil {
		return object{"error": err.Error()}, nil
	}
	return object{"messages": append([]harmony.Message{}, messages...)}, nil
}

func parseAny(ids []int32, role harmony.Role) any {
	read, faults := harmony.ReadAll(ids, role)
	out := struct {
		Messages []harmony.Message `json:"messages"`
		Faults   map[string]int    `json:"faults"`
	}{[]harmony.Message{}, map[string]int{}}
	for _, m := range read {
		out.Messages = append(out.Messages, m.Message)
	}
	for kind, n := range faults {
		if n > 0 {
			out.Faults[harmony.Fault(kind).String()] = n
		}
	}
	return out
}
