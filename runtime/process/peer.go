package process

// The owner of the program at the other end of a local connection. A loopback address keeps no
// other user of the machine out.
//
// What must stay true: if the system tells owners at all, a connection without a known owner is a
// stranger's: a program that closes its end at once must not be taken for the system.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

type peerKey struct{}

// Peer is the owner of a connection.
type Peer struct {
	User  int  // their number
	Local bool // a program of this machine; false: it is not, or it has ended
	Ours  bool // this process's user, or root
}

// PeerOf is the owner of a request's connection; nil if NotePeers was not called for the server.
func PeerOf(ctx context.Context) *Peer {
	p, _ := ctx.Value(peerKey{}).(*Peer)
	return p
}

// NotePeers makes a server, which has not begun, find out the owners of its connections. An error
// says why the system does not tell them.
func NotePeers(s *http.Server) error {
	if err := OwnersAreKnown(); err != nil {
		return err
	}
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if secure, ok := c.(interface{ NetConn() net.Conn }); ok {
			c = secure.NetConn()
		}
		user, err := owner(c)
		ours := err == nil && (user == 0 || user == os.Geteuid())
		return context.WithValue(ctx, peerKey{}, &Peer{user, err == nil, ours})
	}
	return nil
}

// OwnersAreKnown tries it with a connection of this process.
func OwnersAreKnown() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		return err
	}
	defer server.Close()
	user, err := owner(server)
	if err == nil && user != os.Geteuid() {
		err = fmt.Errorf("this process's own connection is said to be of user %d", user)
	}
	return err
}

var errNoOwner = errors.New("no program has the other end")
