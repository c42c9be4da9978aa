// ossrun keys: adds, lists, replaces and removes the named keys of ossrun serve, and shows their
// usage.
//
// What must stay true: a key is printed once, to stdout, for programs to read; a running server
// applies a change at once.

package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/ui/chat"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func keysCommand(t Terminal) *cli.Command {
	var k keys.Key
	return &cli.Command{
		Name:   "keys",
		Action: subcommandsOnly("add, list, usage, rotate, rm and off"),
		Subcommands: []*cli.Command{
			{Name: "add", Flags: flagTable(
				checkedFlag("models", "", "must be names", func(text string) bool {
					k.Models = splitList(text)
					return true
				}),
				checkedFlag("tools", "", "must be some of "+
					"browser, python, mcp, or none", func(text string) bool {
					if k.Tools = []string{}; text != "none" {
						k.Tools = append(k.Tools, splitList(text)...)
					}
					return !slices.ContainsFunc(k.Tools, func(kind string) bool {
						return kind != tools.Browser && kind != tools.Python &&
							kind != tools.MCP
					})
				}),
				boundFlag(&k.Rate, "rate", "/min"),
				boundFlag(&k.Tokens, "tokens", "/day"),
				switchFlag(&k.Admin, "admin"),
				boolFlag("json")),
				Action: func(c *cli.Context) error { return addKey(c, t, k) }},
			{Name: "list", Flags: flagTable(boolFlag("json")), Action: listKeys},
			{Name: "usage", Flags: flagTable(boolFlag("json")), Action: showUsage},
			{Name: "rotate", Flags: flagTable(boolFlag("json")),
				Action: func(c *cli.Context) error {
					var key string
					return changeKey(c, func(all []keys.Key, i int) ([]keys.Key, error) {
						key = all[i].Renew()
						return all, nil
					}, func(name string) error { return printKey(c, t, name, key) })
				}},
			{Name: "rm", Flags: flagTable(boolFlag("keep-records")),
				Action: func(c *cli.Context) error { return removeKey(c, t) }},
			{Name: "off", Action: func(c *cli.Context) error {
				if err := keys.Disable(keys.File()); err != nil {
					return fail(exitUsage, "%v. Remove it first", err)
				}
				t.report("ossrun serve asks for no key")
				return nil
			}},
		},
	}
}

// boundFlag is a number per period, with or without its unit: 60 or 60/min.
func boundFlag(to *int, name, time string) cli.Flag {
	return checkedFlag(name, "", "must be a whole number from 1 on, such as 60"+time+" or 2m",
		func(text string) bool {
			n, err := strconv.Atoi(expandUnits(&cli.IntFlag{}, strings.TrimSuffix(text, time)))
			*to = n
			return err == nil && n > 0
		})
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

func addKey(c *cli.Context, t Terminal, limits keys.Key) error {
	name := c.Args().First()
	if c.NArg() != 1 || !keyName.MatchString(name) {
		return fail(exitUsage, "keys add needs one name of letters, digits and . _ @ -, such as "+
			"alice")
	}
	k, key := keys.New(name)
	limits.ID, limits.Name, limits.Hash, limits.Created = k.ID, k.Name, k.Hash, k.Created
	if err := keys.Change(keys.File(), func(all []keys.Key) ([]keys.Key, error) {
		if keys.Index(all, name) >= 0 {
			return nil, fail(exitUsage, "%s already has a key. Run ossrun keys rotate %[1]s for "+
				"a new one", name)
		}
		return append(all, limits), nil
	}); err != nil {
		return err
	}
	return printKey(c, t, name, key)
}

func printKey(c *cli.Context, t Terminal, name, key string) error {
	if c.Bool("json") {
		return writeJSONLine(c.App.Writer, map[string]string{"name": name, "key": key})
	}
	t.report("the key of %s; it is not shown again:", name)
	_, err := fmt.Fprintln(c.App.Writer, key)
	return err
}

func changeKey(c *cli.Context, work func(all []keys.Key, i int) ([]keys.Key, error),
	done func(name string) error) error {
	if c.NArg() != 1 {
		return fail(exitUsage, "keys %s needs one name. Run ossrun keys list to see them",
			c.Command.Name)
	}
	name := c.Args().First()
	if err := keys.Change(keys.File(), func(all []keys.Key) ([]keys.Key, error) {
		i := keys.Index(all, name)
		if i < 0 {
			return nil, fail(exitUsage, "no key has the name %q. Run ossrun keys list",
				name)
		}
		return work(all, i)
	}); err != nil {
		return err
	}
	return done(name)
}

// removeKey removes a key and what its client has stored. Records to keep are moved first, since a
// server that notices the removal deletes the rest.
func removeKey(c *cli.Context, t Terminal) error {
	id, n, end := "", 0, "is deleted"
	all := func(work func(s records.Store, owner string) (int, error)) error {
		return withSessions(c, func(p chat.Stores) error {
			done, err := work(p.Store, id)
			n += done
			return err
		})
	}
	err := changeKey(c, func(keep []keys.Key, i int) (_ []keys.Key, err error) {
		if id = keep[i].ID; c.Bool("keep-records") {
			end = "belongs to the server now"
			err = all(func(s records.Store, owner string) (int, error) {
				return records.MoveOwned(s, owner, "")
			})
		}
		return slices.Delete(keep, i, i+1), err
	}, func(string) error { return all(records.DeleteOwned) })
	if err != nil {
		return err
	}
	t.report("the key of %s no longer works; what its client had stored (%d) %s",
		c.Args().First(), n, end)
	return nil
}

func listKeys(c *cli.Context) error {
	all, err := keys.Load(keys.File())
	if err = skipDefault(c.App.ErrWriter, err); err != nil {
		return err
	}
	if c.Bool("json") {
		for i := range all {
			all[i].Hash = ""
		}
		return writeJSONLine(c.App.Writer, append([]keys.Key{}, all...))
	}
	if len(all) == 0 {
		fmt.Fprintln(c.App.ErrWriter, "ossrun: there is no named key yet. "+
			"Run ossrun keys add NAME")
		return nil
	}
	w := columns(c.App.Writer)
	fmt.Fprintln(w, "NAME\tCREATED\tMODELS\tTOOLS\tREQUESTS/MIN\tTOKENS/DAY\tADMIN")
	for _, k := range all {
		allowed := "all"
		if k.Tools != nil {
			allowed = cmp.Or(strings.Join(k.Tools, ","), "none")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Name,
			k.Created.Local().Format(time.DateOnly), cmp.Or(strings.Join(k.Models, ","), "all"),
			allowed, unbounded(k.Rate), unbounded(k.Tokens), yesNo[k.Admin])
	}
	return w.Flush()
}

func unbounded(n int) string {
	if n == 0 {
		return "any"
	}
	return term.Number(n)
}

type dailyUsage struct {
	Name string `json:"name"` // "": the key was removed
	Day  string `json:"day"`
	keys.Usage
}

func showUsage(c *cli.Context) error {
	all, err := keys.Load(keys.File())
	if err = skipDefault(c.App.ErrWriter, err); err != nil {
		return err
	}
	return withSessions(c, func(p chat.Stores) error {
		rows := []dailyUsage{}
		for id, days := range keys.AllUsage(p.Store) {
			name := ""
			if i := slices.IndexFunc(all, func(k keys.Key) bool { return k.ID == id }); i >= 0 {
				name = all[i].Name
			}
			for day, used := range days {
				rows = append(rows, dailyUsage{name, day, used})
			}
		}
		slices.SortFunc(rows, func(a, b dailyUsage) int {
			return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Name, b.Name))
		})
		if c.Bool("json") {
			return writeJSONLine(c.App.Writer, rows)
		}
		w := columns(c.App.Writer)
		fmt.Fprintln(w, "DAY\tNAME\tREQUESTS\tPROMPTS\tCACHED\tANSWERS")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Day, cmp.Or(r.Name, "(removed)"),
				term.Number(r.Requests), term.Number(r.Prompt), term.Number(r.Cached),
				term.Number(r.Completion))
		}
		return w.Flush()
	})
}
