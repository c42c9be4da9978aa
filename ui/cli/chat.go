// ossrun chat: the terminal chat, or one answer on stdout.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/remote"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/ui/chat"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func chatCommand(t Terminal) *cli.Command {
	look, theme, bare := struct{ schema, endpoint string }{}, term.Dark, false
	options, answers, chosen := serve.DefaultOptions(), session.Request{}, tools.Options{}
	return &cli.Command{
		Name:      "chat",
		Usage:     "talk to a model, or answer one PROMPT and exit",
		ArgsUsage: "[flags] [PROMPT...]",
		Description: "With a PROMPT, with text on stdin, or with both (the prompt first, then " +
			"the text), the answer goes\n" +
			"to stdout and nothing else does; --show-reasoning sends the reasoning to stderr.\n\n" +
			"Example: ossrun chat\n" +
			"         ossrun chat --effort high \"Is 2027 prime?\"\n" +
			"         ossrun chat -c \"And 2029?\"\n" +
			"         git diff | ossrun chat \"Write a commit message\"",
		Flags: flagTable(engineFlags(&options), groupModel, loraFlag(&options),
			memoryFlags(&options), samplingFlags(&answers), toolFlags(&chosen, ""), groupModel,
			boolFlag("alone", "load the model again, even if ossrun serve has loaded it"),
			serverFlag(&look.endpoint, "endpoint", "use the OpenAI-compatible server at `URL`; "+
				"OSSRUN_API_KEY is its key"),
			printConfigFlag(), groupSessions,
			boolFlag("continue", "continue the latest conversation; with a PROMPT too"),
			&cli.StringFlag{Name: "resume", Usage: "continue the conversation `ID|NAME`, which " +
				"/sessions lists"},
			boolFlag("no-history", "keep nothing of the conversation on the disk"),
			groupSampling,
			inputFlag(&look.schema, "schema", "make every answer follow the JSON Schema in `FILE`"),
			groupScreen,
			&wordFlag{funcFlag("theme", "dark", "`T` is dark, light, none, which has no colours "+
				"(as NO_COLOR), or your own, as "+
				"light,green=bright-blue", func(text string) (err error) {
				if bare = text == "none"; bare {
					return nil
				}
				if theme, err = term.ParseTheme(text); err != nil {
					return fail(exitUsage, "--theme: %s", err)
				}
				return nil
			}), []string{"dark", "light", "none"}},
			boolFlag("no-mouse", "leave the mouse to the terminal, to select text with it"),
			boolFlag("plain", "a chat that only prints lines (the default where TERM is dumb)"),
			group(""), &cli.StringFlag{Name: "prompt", Usage: "the PROMPT: `TEXT`"},
			boolFlag("show-reasoning", "with a PROMPT: print the reasoning on stderr"),
			boolFlag("json", "with a PROMPT: print one JSON object")),
		Action: func(c *cli.Context) error {
			if c.Bool("print-config") {
				m, err := serve.New(c.Context, modelOptions(c, t, &options))
				if err != nil {
					return err
				}
				err = printConfig(t.Out, c, &options, m)
				failed, _ := m.Close()
				return errors.Join(err, failed)
			}
			prompt, err := promptText(c, t)
			if err != nil {
				return err
			}
			oneShot := prompt != ""
			if !oneShot && (c.Bool("json") || c.Bool("show-reasoning")) {
				return fail(exitUsage, "--json and --show-reasoning need a PROMPT or text on stdin")
			}
			if !oneShot && !isTerminal(t.Out) {
				return fail(exitUsage,
					"the chat needs a terminal; give a PROMPT to get one answer on stdout")
			}
			form, err := readSchema(c.Context, look.schema, look.endpoint != "")
			if err != nil {
				return err
			}
			plain := c.Bool("plain") || os.Getenv("TERM") == "dumb"
			restore, notices := func() {}, make(chan string, 8)
			report := func(line string) {
				if oneShot {
					notify(t)(line)
					return
				}
				select {
				case notices <- line:
				default: // no reader any more
				}
			}
			store, resume, err := openChats(c, oneShot && !isTerminal(t.Out), report)
			if err != nil {
				return err
			}
			var claim func(string) (func(), bool)
			if store != nil {
				claim = claimChat
				defer store.Close()
			}
			defer func() { restore() }()
			if store == nil { // sampled turns would stay for a day
				options.Keep.RememberOnDisk = false
			}
			pictures := stateFile("pictures")
			if c.Bool("no-history") {
				pictures = ""
			}
			o := chat.Options{Notices: notices, Approval: chat.NewApproval(), Claim: claim,
				Pictures: pictures, Theme: theme, In: t.In, Out: t.Out,
				Graphics: chat.GraphicsOf(os.Getenv("TERM"), os.Getenv("TERM_PROGRAM")),
				NoMouse:  c.Bool("no-mouse"), NoColor: os.Getenv("NO_COLOR") != "" || bare,
				Store: store, Resume: resume, Format: form.prompt}
			closeModel, err := chooseModel(c, t, &options, !oneShot, report, func() {
				if !oneShot && !plain { // the terminal itself edits lines
					restore = holdTyping(t.In)
				}
			}, &o)
			if err != nil {
				return err
			}
			defer closeModel()
			chosen.Context = o.Model.ContextLength
			if !oneShot {
				chosen.Approve = o.Approval.Ask
			}
			all, err := openTools(c.Context, chosen, report)
			if err != nil {
				return err
			}
			conversation, err := all.Conversation(report)
			if err != nil {
				return err
			}
			defer conversation.Close()
			answers.Final, answers.Schema = form.final, form.schema
			answers.Persist = store != nil
			o.Request, o.Tools, o.ReplaceTools = answers, conversation.Tools(), conversation.Renew
			if oneShot {
				return answerOnce(c, t, o, prompt)
			}
			if !c.Bool("no-history") {
				o.HistoryPath = stateFile("history")
			}
			if plain {
				return chat.RunPlain(c.Context, o)
			}
			return chat.Run(c.Context, o)
		},
	}
}

// stateFile is a file of this program in the XDG state folder.
func stateFile(names ...string) string {
	return filepath.Join(append([]string{xdg.StateHome, "ossrun"}, names...)...)
}

// openChats opens the store of conversations. A scripted question is saved only if it continues a
// conversation.
func openChats(c *cli.Context, program bool, report func(string)) (store session.Store,
	resume string, err error) {
	resuming := c.Bool("continue") || c.IsSet("resume")
	switch {
	case resuming && c.Bool("no-history"):
		return nil, "", fail(exitUsage, "--no-history cannot be used with --continue or --resume")
	case program && !resuming || c.Bool("no-history"):
		return nil, "", nil
	}
	store, err = session.OpenStore(session.StoreOptions{TTL: session.RememberedFor,
		File: stateFile("kept.db"), Notify: report})
	if err != nil {
		report(fmt.Sprintf("this chat is not kept: %s", err))
		return nil, "", nil
	}
	if !resuming {
		return store, "", nil
	}
	saved, err := chat.Find(store, c.String("resume"))
	if err != nil {
		return nil, "", errors.Join(fail(exitUsage, "%s", err), store.Close())
	}
	_, resolveErr := checkpoint.Resolve(saved.Model)
	if resolveErr == nil && !c.IsSet("model") && !c.IsSet("endpoint") {
		err = c.Set("model", saved.Model)
	}
	return store, saved.ID, err
}

// claimChat locks a conversation against other chats until release.
func claimChat(id string) (release func(), ok bool) {
	path := stateFile("open", id+".lock")
	lock, err := store.TryLock(path)
	if errors.Is(err, store.ErrLocked) {
		return nil, false
	}
	if err != nil { // no locks in this file system: the person must not open it twice
		return func() {}, true
	}
	return func() {
		_ = os.Remove(path)
		_ = lock.Close()
	}, true
}

func promptText(c *cli.Context, t Terminal) (string, error) {
	prompt := strings.TrimSpace(c.String("prompt") + " " + strings.Join(c.Args().Slice(), " "))
	if t.In == nil || !piped(t.In) {
		return prompt, nil
	}
	text, err := io.ReadAll(t.In)
	if err != nil {
		return "", fail(exitFailure, "reading stdin: %s", err)
	}
	if !utf8.Valid(text) {
		return "", fail(exitUsage, "stdin is not UTF-8 text")
	}
	piece := strings.TrimRight(string(text), "\n")
	switch {
	case piece == "" && prompt == "":
		return "", fail(exitUsage, "nothing to answer: stdin is empty and there is no PROMPT")
	case piece != "" && prompt != "":
		prompt += "\n\n"
	}
	return prompt + piece, nil
}

// piped reports a pipe or a file, in contrast to a terminal, /dev/null and a closed stdin.
func piped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// printable removes what a terminal would act on or reorder.
func printable(s string, terminal bool) string {
	if !terminal {
		return s
	}
	return term.Clean(s)
}

// answerForm is the required form of answers, and its description in the prompt; zero: free text.
type answerForm struct {
	final  *grammar.Grammar
	schema json.RawMessage // for a server, which makes its own grammar
	prompt string
}

func readSchema(ctx context.Context, path string, port bool) (answerForm, error) {
	if path == "" {
		return answerForm{}, nil
	}
	raw, err := mapping.ReadText(path, mapping.MaxSettings)
	if err != nil {
		return answerForm{}, fail(exitUsage, "--schema %s", err)
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, raw); err != nil {
		return answerForm{}, fail(exitUsage, "--schema %s is not JSON: %s", path, err)
	}
	form := answerForm{prompt: "# Response Formats\n\n## answer\n\n" + flat.String()}
	if port {
		form.schema = flat.Bytes()
		err = remote.CheckSchema(form.schema)
	} else {
		form.final, err = schema.Compile(ctx, flat.Bytes(), false)
	}
	if err != nil {
		return answerForm{}, fail(exitUsage, "--schema %s, %s", path, err)
	}
	return form, nil
}
