package hub

import (
	"context"
	"net"
	"net/http"
)

// ReceiveAhead bounds the unread bytes of a connection in the system.
func (c *Client) ReceiveAhead(bytes int) {
	transport := c.client().Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			err = tcp.SetReadBuffer(bytes)
		}
		return conn, err
	}
}
