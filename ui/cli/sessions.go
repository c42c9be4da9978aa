// ossrun sessions: lists, shows, exports and deletes saved conversations.

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/ui/chat"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func sessionsCommand(t Terminal) *cli.Command {
	asJSON := boolFlag("json")
	return &cli.Command{
		Name:   "sessions",
		Action: subcommandsOnly("list, show, export and rm"),
		Subcommands: []*cli.Command{
			{Name: "list", Flags: flagTable(asJSON), Action: listSessions},
			{Name: "show", Flags: flagTable(asJSON),
				Action: func(c *cli.Context) error {
					return oneSession(c, 1, func(s chat.Saved, _ string) error {
						text, err := sessionText(s, c.Bool("json"))
						if err == nil {
							_, err = fmt.Fprint(t.Out, printable(string(text), isTerminal(t.Out)))
						}
						return err
					})
				}},
			{Name: "export", Action: func(c *cli.Context) error {
				return oneSession(c, 2, func(s chat.Saved, path string) error {
					return exportSession(t, s, path)
				})
			}},
			{Name: "rm", Flags: flagTable(boolFlag("all"),
				&cli.StringFlag{Name: "before"},
				boolFlag("yes")),
				Action: func(c *cli.Context) error { return removeSessions(c, t) }},
		},
	}
}

// withSessions opens the store of conversations, if it exists.
func withSessions(c *cli.Context, work func(chat.Stores) error) error {
	file := stateFile("kept.db")
	o := records.Options{TTL: records.RememberedFor, File: file,
		Notify: func(line string) { fmt.Fprintf(c.App.ErrWriter, "ossrun: %s\n", line) }}
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		o.File = "" // reading creates no file
	}
	store, err := records.Open(o)
	if err != nil && skipDefault(c.App.ErrWriter, err) == nil {
		o.File = ""
		store, err = records.Open(o)
	}
	if err != nil {
		return fail(exitFailure, "reading the conversations: %s", err)
	}
	err = work(chat.Stores{Store: store, History: stateFile("history"),
		Pictures: stateFile("pictures"), Claim: claimChat})
	return errors.Join(err, store.Close())
}

func listSessions(c *cli.Context) error {
	return withSessions(c, func(p chat.Stores) error {
		all := chat.List(p.Store)
		if c.Bool("json") {
			return writeJSONLine(c.App.Writer, all)
		}
		if len(all) == 0 {
			fmt.Fprintln(c.App.ErrWriter, "ossrun: no conversation is saved yet. Run ossrun chat")
			return nil
		}
		w := columns(c.App.Writer)
		fmt.Fprintln(w, "ID\tCHANGED\tQUESTIONS\tMODEL\tNAME")
		for _, s := range all {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", s.ID,
				s.Changed.Local().Format("2006-01-02 15:04"), s.Questions, s.Model, s.Name)
		}
		return w.Flush()
	})
}

// oneSession finds the conversation named by the first of n arguments.
func oneSession(c *cli.Context, n int, work func(s chat.Saved, rest string) error) error {
	if c.NArg() != n {
		needs := "one ID or name"
		if n > 1 {
			needs = "an ID or name, and a file"
		}
		return fail(exitUsage, "%s needs %s. Run ossrun sessions list to see the IDs",
			c.Command.Name, needs)
	}
	return withSessions(c, func(p chat.Stores) error {
		s, err := findSession(p, c.Args().First())
		if err != nil {
			return err
		}
		return work(s, c.Args().Get(1))
	})
}

func findSession(p chat.Stores, name string) (s chat.Saved, err error) {
	if name == "" {
		return s, fail(exitUsage, "an ID or a name is missing. Run ossrun sessions list to see "+
			"them")
	}
	if s, err = chat.Find(p.Store, name); err != nil {
		err = fail(exitUsage, "%s", err)
	}
	return s, err
}

func sessionText(s chat.Saved, asJSON bool) ([]byte, error) {
	if !asJSON {
		return []byte(s.Markdown()), nil
	}
	text, err := s.Document()
	return append(text, '\n'), err
}

func exportSession(t Terminal, s chat.Saved, path string) error {
	if err := chat.ExportName(path); err != nil {
		return fail(exitUsage, "%s", err)
	}
	text, err := sessionText(s, strings.EqualFold(filepath.Ext(path), ".json"))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fail(exitUsage, "%q exists. Give another file", path)
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fail(exitFailure, "writing %s: %s", path, err)
	}
	fmt.Fprintf(t.Err, "ossrun: %q was written to %s\n", s.Name, path)
	return nil
}

var daysAgo = regexp.MustCompile(`^(\d{1,5})d$`)

func beforeTime(text string) (time.Time, error) {
	if m := daysAgo.FindStringSubmatch(text); m != nil {
		days, _ := strconv.Atoi(m[1])
		return time.Now().AddDate(0, 0, -days), nil
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		return day, fail(exitUsage, "--before must be a date such as 2026-01-31, or days such as "+
			"30d, not %q", text)
	}
	return day, nil
}

func removeSessions(c *cli.Context, t Terminal) error {
	all, cutoff := c.Bool("all"), c.String("before")
	ways := 0
	for _, isSet := range []bool{all, c.IsSet("before"), c.NArg() > 0} {
		if isSet {
			ways++
		}
	}
	if ways != 1 {
		return fail(exitUsage, "rm needs IDs or names, or --before, or --all. Run ossrun sessions "+
			"list to see them")
	}
	if !c.Bool("yes") && !isTerminal(t.In) {
		return fail(exitUsage, "rm asks before it deletes, and needs a terminal for that. "+
			"Give --yes")
	}
	return withSessions(c, func(p chat.Stores) error {
		chosen, err := sessionsToRemove(c, p, cutoff)
		if err != nil {
			return err
		}
		if len(chosen) > 0 && !c.Bool("yes") {
			what := term.Count(len(chosen), "conversation")
			if len(chosen) == 1 {
				what = strconv.Quote(chosen[0].Name)
			}
			switch agreed, err := askYes(t, "Delete "+what+" for good? [y/N] ", false); {
			case err != nil:
				return err
			case !agreed:
				return fail(exitFailure, "nothing was deleted")
			}
		}
		deleted := 0
		for _, s := range chosen {
			if failed := p.Delete(s); failed != nil {
				err = errors.Join(err, fmt.Errorf("%s was not deleted: %w", s.ID, failed))
				continue
			}
			deleted++
		}
		if deleted > 0 || err == nil {
			fmt.Fprintf(t.Err, "ossrun: %s deleted\n", term.Count(deleted, "conversation"))
		}
		return errors.Join(err, damagedCopies(t, all && err == nil))
	})
}

func sessionsToRemove(c *cli.Context, p chat.Stores, cutoff string) (chosen []chat.Saved,
	err error) {
	limit := time.Now().AddDate(1, 0, 0)
	if cutoff != "" {
		if limit, err = beforeTime(cutoff); err != nil {
			return nil, err
		}
	}
	if c.NArg() == 0 {
		for _, s := range chat.List(p.Store) {
			if s.Changed.Before(limit) {
				chosen = append(chosen, s)
			}
		}
		return chosen, nil
	}
	for _, name := range c.Args().Slice() {
		s, err := findSession(p, name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// eraseSession deletes a conversation for a client of a server; the operator is the client "".
func eraseSession(s records.Store, client, id string) error {
	p := chat.Stores{Store: s, Claim: claimChat}
	if client == "" {
		p.History, p.Pictures = stateFile("history"), stateFile("pictures")
	}
	saved, err := chat.Find(s, id)
	if err != nil || saved.ID != id {
		return err
	}
	return p.Delete(saved)
}

// damagedCopies deletes or names copies of a damaged store: deleted conversations may be in them.
func damagedCopies(t Terminal, remove bool) (err error) {
	files, _ := filepath.Glob(stateFile("kept.db.damaged-*"))
	for _, f := range files {
		if remove {
			err = errors.Join(err, os.Remove(f))
		} else {
			fmt.Fprintf(t.Err, "ossrun: a damaged copy may still hold it. Delete %s\n", f)
		}
	}
	return err
}
