// ossrun pull: downloads a model into the Hugging Face cache, with one progress bar. The first-run
// offer of chat uses it too.

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func pullCommand(t Terminal) *cli.Command {
	return &cli.Command{
		Name: "pull",
		Flags: flagTable(boolFlag("json"),
			boolFlag("verify"),
			boolFlag("offline"), configFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return fail(exitUsage, "pull needs one MODEL, such as 20b. Run ossrun pull --help")
			}
			show := &pullScreen{name: c.Args().First(), terminal: t, json: c.Bool("json"),
				bar: isTerminal(t.Err) && !c.Bool("json")}
			if show.name == models.Demo {
				show.note("demo is built into ossrun. Run ossrun chat --model demo")
				return nil
			}
			target, err := models.ParseTarget(c.Args().First())
			if err != nil {
				return &exitError{exitModel, err.Error()}
			}
			if accepted, err := offerForeign(t, target); accepted || err != nil {
				return err
			}
			client := hub.FromEnvironment()
			defer client.Close()
			client.Offline = client.Offline || c.Bool("offline")
			show.name = target.Name
			err = download(c.Context, client, target, c.Bool("verify"), show)
			if err == nil && !show.json {
				flag := "--model"
				if _, err := os.Stat(filepath.Join(show.path, models.LoRAConfig)); err == nil {
					flag = "--lora"
				}
				t.report("next: ossrun chat %s %s", flag, c.Args().First())
			}
			return err
		},
	}
}

func download(ctx context.Context, client *hub.Client, target models.Target, verify bool,
	show *pullScreen) error {
	client.UserAgent = "ossrun/" + build().Version
	root, err := store.Root()
	if err != nil {
		return err
	}
	if client.Offline {
		if cached, err := checkpoint.FindTarget(target); err == nil && cached.Complete {
			return show.done(hub.Result{Path: cached.Path, Commit: cached.Commit,
				Bytes: cached.Bytes})
		}
	}
	// A pull needs little memory, so frequent collections are cheap and keep the process small;
	// memory from the program's start is released first.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	debug.FreeOSMemory()
	show.start = time.Now()
	from := "asking " + client.Endpoint
	if client.Offline {
		from = "looking in " + root
	}
	show.note(fmt.Sprintf("%s for %s", from, target.Repo.ID()))
	client.Retrying = show.retrying(client)
	result, err := client.Pull(ctx, hub.Options{Root: root, Repo: target.Repo,
		Revision: target.Revision, Verify: verify,
		Progress: show.progress, Note: show.note, Check: func(config []byte) error {
			if err := models.ForeignError(config); err != nil {
				return fail(exitModel, "%s: %s", target.Repo.ID(), err)
			}
			return nil
		}})
	show.clear()
	if err == nil {
		return show.done(result)
	}
	if ctx.Err() != nil {
		if !show.json {
			fmt.Fprintf(show.terminal.Err, "ossrun: interrupted%s\n", cmp.Or(show.stored(),
				" before anything was downloaded"))
		}
		// an interruption's exit code, however the context ended
		return context.Canceled
	}
	if e, ok := errors.AsType[*hub.UnreachableError](err); ok {
		folder := filepath.Dir(filepath.Dir(store.SnapshotPath(root, target.Repo, "x")))
		return fail(exitFailure, "%s%s. Behind a proxy set HTTPS_PROXY, for a mirror HF_ENDPOINT. "+
			"Without a network, pull on another computer, copy its folder to %s and use --offline",
			e, show.stored(), folder)
	}
	return err
}

// pullScreen shows a pull: a bar for a person, JSON lines for a program, or only the result.
type pullScreen struct {
	name      string
	terminal  Terminal
	bar, json bool
	path      string // of the pulled model
	watch     func(name string, p hub.Progress)

	start   time.Time
	last    time.Time
	retried time.Time // when a retry was last reported
	got     hub.Progress
	progressLine
}

// stored describes what an interrupted pull has on the disk; "" if nothing is known.
func (s *pullScreen) stored() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got.Done == 0 {
		return ""
	}
	return fmt.Sprintf(": %s downloaded. Run the same command to resume", howMuch(s.got))
}

// lineEvery is the interval of progress lines where no terminal is.
var lineEvery = 30 * time.Second

type pullEvent struct {
	Event       string  `json:"event"` // progress, note, done
	Model       string  `json:"model"`
	Bytes       int64   `json:"bytes,omitempty"`   // of all files
	Done        int64   `json:"done,omitempty"`    // on the disk
	Fetched     int64   `json:"fetched,omitempty"` // received by this pull
	Rate        float64 `json:"bytes_per_second,omitempty"`
	SecondsLeft float64 `json:"seconds_left,omitempty"`
	Files       int     `json:"files,omitempty"`
	FilesDone   int     `json:"files_done,omitempty"`
	Text        string  `json:"text,omitempty"`
	Commit      string  `json:"commit,omitempty"`
	Path        string  `json:"path,omitempty"`
	Seconds     float64 `json:"seconds,omitempty"`

	Weights checkpoint.Verification `json:"weights,omitempty"` // as in list
}

func (s *pullScreen) emit(e pullEvent) error {
	e.Model = s.name
	return json.NewEncoder(s.terminal.Out).Encode(e)
}

func (s *pullScreen) progress(p hub.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got = p; s.watch != nil {
		s.watch(s.name, p)
	}
	line := fmt.Sprintf("%s  %s  %s", s.name, howMuch(p), pace(p))
	switch {
	case s.json:
		if time.Since(s.last) >= time.Second || p.FilesDone == p.Files {
			s.last = time.Now()
			_ = s.emit(pullEvent{Event: "progress", Bytes: p.Bytes, Done: p.Done,
				Fetched: p.Fetched, Rate: p.Rate,
				// a write error is reported at the end
				SecondsLeft: p.Remaining.Seconds(), Files: p.Files, FilesDone: p.FilesDone})
		}
	case s.bar:
		s.draw(s.terminal.Err, line, p.Done, p.Bytes)
	case time.Since(s.last) >= lineEvery:
		if !s.last.IsZero() {
			s.terminal.report("%s", line)
		}
		s.last = time.Now()
	}
}

func howMuch(p hub.Progress) string {
	if p.Bytes < 1e9 {
		return fmt.Sprintf("%.1f of %.1f MB", float64(p.Done)/1e6, float64(p.Bytes)/1e6)
	}
	return fmt.Sprintf("%.2f of %.2f GB", gb(p.Done), gb(p.Bytes))
}

// pace is the rate and the time left, or another activity.
func pace(p hub.Progress) string {
	switch {
	case p.Done >= p.Bytes:
		return "checking"
	case p.Rate < 1:
		return "waiting"
	}
	return fmt.Sprintf("%.1f MB/s  %s left", p.Rate/1e6, formatSeconds(p.Remaining.Seconds()))
}

func (s *pullScreen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json {
		_ = s.emit(pullEvent{Event: "note", Text: text})
		return
	}
	s.erase()
	s.terminal.report("%s", text)
}

// retrying returns the client's callback for failed attempts.
func (s *pullScreen) retrying(client *hub.Client) func(error, int, time.Duration) {
	return func(err error, attempts int, wait time.Duration) {
		s.retry(fmt.Sprintf("no answer: %s; try %d of %d in %.1f s", hub.Cause(err), attempts+1,
			client.Attempts, wait.Seconds()))
	}
}

// retry reports a failed attempt, once if all connections fail together.
func (s *pullScreen) retry(text string) {
	s.mu.Lock()
	repeated := time.Since(s.retried) < 200*time.Millisecond
	if !repeated {
		s.retried = time.Now()
	}
	s.mu.Unlock()
	if !repeated {
		s.note(text)
	}
}

func (s *pullScreen) done(r hub.Result) error {
	s.path = r.Path
	source, _ := checkpoint.Resolve(r.Path) // deleted meanwhile: not verified
	vouched := source.Verification()
	seconds := 0.0
	if !s.start.IsZero() {
		seconds = time.Since(s.start).Seconds()
	}
	if s.json {
		return s.emit(pullEvent{Event: "done", Bytes: r.Bytes, Fetched: r.Fetched, Commit: r.Commit,
			Path: r.Path, Seconds: seconds, Weights: vouched})
	}
	how := "already downloaded"
	if r.Fetched > 0 {
		how = fmt.Sprintf("%s in %s, %.1f MB/s", size(r.Fetched), formatSeconds(seconds),
			float64(r.Fetched)/1e6/max(seconds, 1e-3))
	}
	text := term.Clean(fmt.Sprintf("%s is ready (%s). %s.\n%s\n", s.name, how,
		vouched.Sentence(), r.Path))
	_, err := io.WriteString(s.terminal.Out, styled(s.terminal.Out, text))
	return err
}
