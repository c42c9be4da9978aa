package process

// Linux tells the owner of the other end of a Unix socket by its credentials, and of a TCP
// connection by sock_diag(7).

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// owner is the user of the program at the other end of a connection from this machine.
func owner(c net.Conn) (user int, err error) {
	switch c := c.(type) {
	case *net.UnixConn:
		raw, err := c.SyscallConn()
		if err != nil {
			return 0, err
		}
		var cred *unix.Ucred
		none := raw.Control(func(fd uintptr) {
			cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		})
		if err = errors.Join(none, err); err != nil {
			return 0, err
		}
		return int(cred.Uid), nil
	case *net.TCPConn:
		return tcpOwner(c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr))
	}
	return 0, fmt.Errorf("a %T has no owner", c)
}

const (
	sockDiagByFamily = 20
	inetDiagRequest  = 16 + 8 + 48 // the header, families and states, and the socket
	inetDiagUser     = 16 + 4 + 48 + 12
)

// tcpOwner is the user of the socket that has these addresses, as it sees them.
func tcpOwner(local, remote *net.TCPAddr) (user int, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC,
		unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	little, big := binary.NativeEndian, binary.BigEndian
	b := make([]byte, inetDiagRequest)
	little.PutUint32(b, uint32(len(b)))
	little.PutUint16(b[4:], sockDiagByFamily)
	little.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b[16], b[17] = unix.AF_INET6, unix.IPPROTO_TCP
	little.PutUint32(b[20:], ^uint32(0)) // in any state
	big.PutUint16(b[24:], uint16(local.Port))
	big.PutUint16(b[26:], uint16(remote.Port))
	from, to := local.IP.To16(), remote.IP.To16()
	if local.IP.To4() != nil {
		b[16], from, to = unix.AF_INET, local.IP.To4(), remote.IP.To4()
	}
	copy(b[28:44], from)
	copy(b[44:60], to)
	little.PutUint64(b[64:], ^uint64(0)) // no cookie
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	switch {
	case err != nil:
		return 0, err
	case n >= 20 && little.Uint16(answer[4:]) == unix.NLMSG_ERROR:
		return 0, os.NewSyscallError("sock_diag", unix.Errno(-int32(little.Uint32(answer[16:]))))
	case n < inetDiagUser+8 || little.Uint32(answer[inetDiagUser+4:]) == 0:
		return 0, errNoOwner // a socket that was closed has no file, and the user 0
	}
	return int(little.Uint32(answer[inetDiagUser:])), nil
}
