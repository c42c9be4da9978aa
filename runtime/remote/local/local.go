// Package local lets the processes of one user share one engine. A running server is found by its
// socket in the XDG runtime directory. `ossrun chat` then runs its turns there and does not load
// the weights a second time.
//
// The protocol is lines of JSON. A connection begins with one order (wire.go) and serves only it:
// status, turn or stop. A turn uses the session's own types, so a chat that has joined loses
// nothing: reasoning, usage, timings, tokens.
//
// What must stay true: only the user can reach the socket (its folder is 0700); a socket without a
// listener is removed by the process that finds it; a client that disconnects, or asks for it,
// cancels its turn.
package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process"
)

// Protocol is the version of the protocol; processes of different versions do not join.
const Protocol = 3

const (
	suffix = ".sock"
	// pendingSuffix ends the name of a socket that does not listen yet.
	pendingSuffix = ".new"
	// maxSocketPath is the most bytes of a socket's path: 108 with its end on Linux, fewer
	// elsewhere.
	maxSocketPath = 103
	// statusTimeout limits a server's answer about its status.
	statusTimeout = 2 * time.Second
)

// Folder returns the folder of this user's sockets and creates it if missing: ossrun in the XDG
// runtime directory, without one in the XDG state folder, or, if the home cannot be used, a
// temporary folder.
func Folder() (string, error) {
	base := xdg.RuntimeDir
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		base = xdg.StateHome
	}
	folder := filepath.Join(base, "ossrun")
	err := os.MkdirAll(folder, 0o700)
	if err != nil {
		folder = filepath.Join(os.TempDir(), fmt.Sprint("ossrun-", os.Getuid()))
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("the folder for the socket: %w", err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", fmt.Errorf("the folder for the socket: %w", err)
	}
	if !info.IsDir() || !process.Owns(info) {
		return "", fmt.Errorf("%s is a link or of another user: set XDG_RUNTIME_DIR to a folder "+
			"of yours", folder)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(folder, 0o700); err != nil {
			return "", fmt.Errorf("the folder for the socket is open to others: %w", err)
		}
	}
	return folder, nil
}

// Listen makes the socket of this process in folder. Closing the listener removes it.
func Listen(folder string) (net.Listener, error) {
	// two containers may share the folder and have the same process id
	var id [4]byte
	_, _ = rand.Read(id[:])
	path := filepath.Join(folder, fmt.Sprintf("%d-%x%s", os.Getpid(), id, suffix))
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s is too long for a socket, which has %d bytes: set "+
			"XDG_RUNTIME_DIR to a shorter folder", path, maxSocketPath)
	}
	// between bind and listen a socket refuses connections like a stale one, so it gets its final
	// name once it listens. On Windows refused has another number: no process removes a socket
	// there, and renaming one may fail.
	first := strings.TrimSuffix(path, suffix) + pendingSuffix
	if runtime.GOOS == "windows" {
		first = path
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: first, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(first, 0o600), os.Rename(first, path)); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(first))
	}
	return &listener{l, path}, nil
}

type listener struct {
	*net.UnixListener
	path string
}

func (l *listener) Close() error {
	return errors.Join(l.UnixListener.Close(), store.IgnoreMissing(os.Remove(l.path)))
}

type Server struct {
	Path string
	Status
}

// Servers lists the running servers of this user, the oldest first, and removes the sockets of
// ended ones.
func Servers(ctx context.Context, folder string) ([]Server, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Server
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if !strings.HasSuffix(e.Name(), suffix) {
			removePending(path, e)
			continue
		}
		st, err := askStatus(ctx, path)
		switch {
		case err == nil:
			list = append(list, Server{path, st})
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path) // another process may have been faster
		}
	}
	slices.SortFunc(list, func(a, b Server) int { return a.Started.Compare(b.Started) })
	return list, nil
}

// removePending removes the socket of a server that was killed while creating it.
func removePending(path string, e fs.DirEntry) {
	if info, err := e.Info(); err == nil && strings.HasSuffix(path, pendingSuffix) &&
		time.Since(info.ModTime()) > time.Minute {
		_ = os.Remove(path) // another process may have been faster
	}
}

// Running lists the servers of this user, see Servers.
func Running(ctx context.Context) ([]Server, error) {
	folder, err := Folder()
	if err != nil {
		return nil, err
	}
	list, err := Servers(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("looking for servers: %w", err)
	}
	return list, nil
}

func askStatus(ctx context.Context, path string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var st Status
	err := ask(ctx, path, order{Do: doStatus}, &st)
	return st, err
}

// Stop asks the server to finish its turns and end, or to end at once.
func (s Server) Stop(ctx context.Context, now bool) error {
	var done struct{}
	return ask(ctx, s.Path, order{Do: doStop, Now: now}, &done)
}

// AwaitEnd waits until the server's socket is closed.
func (s Server) AwaitEnd(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := dial(ctx, s.Path)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return nil
		}
		conn.Close()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

func ask(ctx context.Context, path string, o order, answer any) error {
	conn, err := dial(ctx, path)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(o); err != nil {
		return err
	}
	return json.NewDecoder(conn).Decode(answer)
}
