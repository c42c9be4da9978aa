package process

// Whose program is at the other end of a connection from this machine. A loopback address keeps no
// other user of the machine out.
//
// What must stay true: where the system tells owners at all, a connection whose owner it does not
// tell is a stranger's: a program that closes its end at once must not be taken for the system.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

type strangerKey struct{}

// Stranger tells that a request came over a connection of another user's program. NoteStrangers
// must have been called for the server.
func Stranger(ctx context.Context) bool { return ctx.Value(strangerKey{}) != nil }

// NoteStrangers has a server, which has not begun, find out whose its connections are. An error
// says why the system does not tell that.
func NoteStrangers(s *http.Server) error {
	if err := OwnersAreTold(); err != nil {
		return err
	}
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if secure, ok := c.(interface{ NetConn() net.Conn }); ok {
			c = secure.NetConn()
		}
		if user, err := owner(c); err != nil || user != 0 && user != os.Geteuid() {
			return context.WithValue(ctx, strangerKey{}, true)
		}
		return ctx
	}
	return nil
}

// OwnersAreTold tries it with a connection of this process.
func OwnersAreTold() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer far.Close()
	near, err := l.Accept()
	if err != nil {
		return err
	}
	defer near.Close()
	user, err := owner(near)
	if err == nil && user != os.Geteuid() {
		err = fmt.Errorf("this process's own connection is said to be of user %d", user)
	}
	return err
}

var errNoOwner = errors.New("no program has the other end")
