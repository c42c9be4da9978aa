// ossrun ps and ossrun stop: the servers of this user.

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/serve"
)

func psCommand() *cli.Command {
	return &cli.Command{
		Name:  "ps",
		Flags: flagTable(boolFlag("json"), configFlag()),
		Action: func(c *cli.Context) error {
			list, err := local.Running(c.Context)
			if err = skipDefault(c.App.ErrWriter, err); err != nil {
				return err
			}
			if c.Bool("json") {
				all := mapSlice(list, func(s local.Server) local.Status { return s.Status })
				return json.NewEncoder(c.App.Writer).Encode(all)
			}
			if len(list) == 0 {
				fmt.Fprintln(c.App.ErrWriter, "ossrun: no server is running. Run ossrun serve")
				return nil
			}
			return printServers(c, list)
		},
	}
}

func printServers(c *cli.Context, list []local.Server) error {
	w := columns(c.App.Writer)
	fmt.Fprintln(w, "PID\tMODEL\tSTATE\tMEMORY\tCONTEXT\tRUNNING\tWAITING\tKV\tUNLOADS\tUP\tPORT")
	for _, s := range list {
		if len(s.Models) == 0 {
			fmt.Fprintf(w, "%d\t-\t%s%s\t%s\t%s/v1\n", s.PID, cmp.Or(s.Work, string(s.State)),
				strings.Repeat("\t-", 6), shortDuration(time.Since(s.Started)), s.URL)
		}
		for i, m := range s.Models {
			if i > 0 && m.State == string(serve.Unloaded) {
				continue // ossrun list has the models it could load
			}
			state, memory, kv := m.State, "-", "-"
			if s.State == local.Draining {
				state = string(s.State)
			}
			if m.Bytes > 0 {
				memory, kv = gigabytes(m.Bytes), fmt.Sprintf("%.0f%%", 100*m.KV)
			}
			unloads := "never"
			if m.Unloads != nil {
				unloads = "in " + shortDuration(time.Until(*m.Unloads))
			} else if m.State != "ready" || m.Running > 0 {
				unloads = "-"
			}
			port := s.URL + "/v1"
			if s.Kind == local.Chat {
				port = "none: a chat"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", s.PID, m.Name, state,
				memory, m.Context, m.Running, m.Waiting, kv,
				unloads, shortDuration(time.Since(s.Started)), port)
		}
	}
	return w.Flush()
}

func stopCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name: "stop",
		Flags: flagTable(
			boolFlag("now"),
			boolFlag("all"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return fail(exitUsage,
					"stop takes one PID or PORT, not also %q",
					c.Args().Get(1))
			}
			list, err := local.Running(c.Context)
			if err = skipDefault(c.App.ErrWriter, err); err != nil {
				return err
			}
			if list, err = chosenServers(list, c.Args().First(), c.Bool("all")); err != nil {
				return err
			}
			for _, s := range list {
				if err := stopServer(c.Context, s, c.Bool("now")); err != nil {
					return err
				}
				t.report("process %d at %s has stopped", s.PID, s.URL)
			}
			return nil
		},
	}
}

func stopServer(ctx context.Context, s local.Server, now bool) error {
	if err := s.Stop(ctx, now); err != nil {
		return fail(exitFailure,
			"process %d does not answer: %s; kill %[1]d ends it", s.PID, rootCause(err))
	}
	wait, cancel := context.WithTimeout(ctx, drainTime+2*closeTime)
	defer cancel()
	if err := s.AwaitEnd(wait); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fail(exitFailure,
			"process %d was told to stop and is still there: kill %[1]d ends it", s.PID)
	}
	return nil
}

// chosenServers are the servers with a PID or port. Chats are not stopped by others.
func chosenServers(list []local.Server, which string, all bool) ([]local.Server, error) {
	var servers []local.Server
	for _, s := range list {
		if s.Kind != local.Chat {
			servers = append(servers, s)
		} else if strconv.Itoa(s.PID) == which {
			return nil, fail(exitUsage, "process %d is a chat. Leave it with /quit, or run "+
				"kill %[1]d", s.PID)
		}
	}
	list = servers
	if len(list) == 0 {
		return nil, fail(exitFailure, "no server is running")
	}
	if all {
		return list, nil
	}
	if which == "" {
		if len(list) > 1 {
			return nil, fail(exitUsage,
				"%d servers run: name one by its PID or port (ossrun ps shows them), or give --all",
				len(list))
		}
		return list, nil
	}
	for _, s := range list {
		if strconv.Itoa(s.PID) == which || strings.HasSuffix(s.URL, ":"+which) {
			return []local.Server{s}, nil
		}
	}
	return nil, fail(exitUsage, "no server has the PID or port %s. Run ossrun ps", which)
}
