// ossrun chat: the terminal chat, or one answer on stdout.

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/adrg/xdg"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/remote"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/ui/chat"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func chatCommand(t Terminal) *cli.Command {
	v := &chatVerb{terminal: t, theme: term.Dark, options: serve.DefaultOptions()}
	return &cli.Command{
		Name:  "chat",
		Flags: v.flags(),
		Action: func(c *cli.Context) error {
			v.c = c
			return v.run()
		},
	}
}

// chatVerb has the flags of ossrun chat.
type chatVerb struct {
	c        *cli.Context
	terminal Terminal

	options          serve.Options
	request          session.Request
	tools            tools.Options
	schema, endpoint string
	theme            term.Theme
	noColor          bool // --theme none

	oneShot   bool        // there is a PROMPT
	answering atomic.Bool // its answer is being written
	notices   chan string // for the person, during the chat or after the answer
}

func (v *chatVerb) flags() []cli.Flag {
	return flagTable(engineFlags(&v.options), groupModel, loraFlag(&v.options),
		memoryFlags(&v.options), samplingFlags(&v.request), toolFlags(&v.tools, ""), groupModel,
		boolFlag("alone"),
		serverFlag(&v.endpoint, "endpoint"),
		groupSettings, boolFlag("print-config"), groupSessions,
		boolFlag("continue"),
		&cli.StringFlag{Name: "resume"},
		boolFlag("no-history"),
		groupSampling,
		inputFlag(&v.schema, "schema"),
		groupScreen,
		&wordFlag{funcFlag("theme", "dark", v.setTheme), []string{"dark", "light", "none"}},
		boolFlag("no-notify"),
		boolFlag("no-mouse"),
		boolFlag("plain"),
		group(""), &cli.StringFlag{Name: "prompt"},
		boolFlag("show-reasoning"),
		boolFlag("json"))
}

func (v *chatVerb) setTheme(text string) (err error) {
	if v.noColor = text == "none"; v.noColor {
		return nil
	}
	if v.theme, err = term.ParseTheme(text); err != nil {
		return fail(exitUsage, "--theme: %s", err)
	}
	return nil
}

func (v *chatVerb) run() error {
	c, t := v.c, v.terminal
	if c.Bool("print-config") {
		return v.printConfig()
	}
	prompt, err := promptText(c, t)
	if err != nil {
		return err
	}
	v.oneShot, v.notices = prompt != "", make(chan string, 8)
	if !v.oneShot && (c.Bool("json") || c.Bool("show-reasoning")) {
		return fail(exitUsage, "--json and --show-reasoning need a PROMPT or text on stdin")
	}
	if !v.oneShot && !isTerminal(t.Out) {
		return fail(exitUsage,
			"the chat needs a terminal; give a PROMPT to get one answer on stdout")
	}
	o := v.screenOptions()
	if o.Store, o.Resume, err = openChats(c, v.oneShot && !isTerminal(t.Out),
		v.report); err != nil {
		return err
	}
	if o.Store != nil {
		o.Claim = claimChat
		defer o.Store.Close()
	} else { // sampled turns would stay for a day
		v.options.Keep.RememberOnDisk = false
	}
	form, err := readSchema(c.Context, v.schema, v.endpoint != "")
	if err != nil {
		return err
	}
	plain, restore := c.Bool("plain") || os.Getenv("TERM") == "dumb", func() {}
	defer func() { restore() }()
	closeModel, err := chooseModel(c, t, &v.options, !v.oneShot, v.report, func() {
		if !v.oneShot && !plain { // the terminal itself edits lines
			restore = holdTyping(t.In)
		}
	}, &o)
	if err = explainSaved(c, err); err != nil {
		return err
	}
	defer closeModel()
	conversation, err := v.openTools(&o)
	if err != nil {
		return err
	}
	defer conversation.Close()
	v.request.Final, v.request.Schema, o.Format = form.final, form.schema, form.prompt
	// a chat's pages are on no disk, which /delete would have to search
	v.request.Persist, v.request.InMemory = o.Store != nil, true
	o.Request, o.Tools, o.ReplaceTools = v.request, conversation.Tools, conversation.Renew
	switch {
	case v.oneShot:
		v.answering.Store(true)
		return answerOnce(c, t, o, prompt)
	case plain:
		return chat.RunPlain(c.Context, o)
	}
	return chat.Run(c.Context, o)
}

func (v *chatVerb) printConfig() error {
	m, err := serve.New(v.c.Context, modelOptions(v.c, v.terminal, &v.options))
	if err != nil {
		return err
	}
	err = printConfig(v.terminal.Out, v.c, &v.options, m)
	failed, _ := m.Close()
	return errors.Join(err, failed)
}

func (v *chatVerb) report(line string) {
	if v.oneShot && !v.answering.Load() {
		notify(v.terminal)(line)
		return
	}
	select {
	case v.notices <- line:
	default: // no reader any more
	}
}

func (v *chatVerb) screenOptions() chat.Options {
	c, t := v.c, v.terminal
	o := chat.Options{Notices: v.notices, Approval: chat.NewApproval(), Theme: v.theme,
		In: t.In, Out: t.Out,
		Graphics: chat.GraphicsOf(os.Getenv("TERM"), os.Getenv("TERM_PROGRAM")),
		NoNotify: c.Bool("no-notify"),
		NoMouse:  c.Bool("no-mouse"), NoColor: os.Getenv("NO_COLOR") != "" || v.noColor}
	if !c.Bool("no-history") {
		o.Pictures = stateFile("pictures")
		if !v.oneShot {
			o.HistoryPath = stateFile("history")
		}
	}
	return o
}

// openTools opens the tools for the chosen model and begins a conversation with them.
func (v *chatVerb) openTools(o *chat.Options) (*tools.Conversation, error) {
	v.tools.Context, v.tools.Interactive = o.Model.ContextLength, !v.oneShot
	all, err := openTools(v.c.Context, v.tools, v.report)
	if err != nil {
		return nil, err
	}
	return all.Conversation(v.report)
}

// stateFile is a file of this program in the XDG state folder.
func stateFile(names ...string) string {
	return filepath.Join(append([]string{xdg.StateHome, "ossrun"}, names...)...)
}

// openChats opens the store of conversations. A scripted question is saved only if it continues a
// conversation.
func openChats(c *cli.Context, program bool, report func(string)) (store records.Store,
	resume string, err error) {
	resuming := c.Bool("continue") || c.IsSet("resume")
	switch {
	case resuming && c.Bool("no-history"):
		return nil, "", fail(exitUsage, "--no-history cannot be used with --continue or --resume")
	case program && !resuming || c.Bool("no-history"):
		return nil, "", nil
	}
	store, err = records.Open(records.Options{TTL: records.RememberedFor,
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
	if !onCommandLine(c, "model") && !onCommandLine(c, "endpoint") {
		err = c.Set("model", cmp.Or(saved.Source, saved.Model))
		if saved.Endpoint != "" { // else one of the config file stays
			err = errors.Join(err, c.Set("endpoint", saved.Endpoint))
		}
		for _, name := range []string{"model", "endpoint"} {
			noteOrigin(c, name, "conversation "+saved.ID)
		}
	}
	return store, saved.ID, err
}

// explainSaved adds to err that a continued conversation asked for the model.
func explainSaved(c *cli.Context, err error) error {
	if err == nil || !c.Bool("continue") && !c.IsSet("resume") || onCommandLine(c, "model") ||
		onCommandLine(c, "endpoint") || errors.Is(err, context.Canceled) {
		return err
	}
	return fail(exitCode(err), "the conversation was with %s: %s. Give --model NAME or --endpoint "+
		"URL to continue it with another model", c.String("model"), err)
}

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
