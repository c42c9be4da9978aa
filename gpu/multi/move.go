package multi

import (
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Moves the batch's rows of each buffer that the next segment reads across a cut.

// peerReader is a device that takes bytes out of another's memory without the host, if it can.
type peerReader interface {
	Take(to engine.Region, offset int64, from engine.Region, fromAt, bytes int64) (bool, error)
}

// pieceMover is a device that moves several pieces, out of its memory or into it, with one wait.
type pieceMover interface {
	Pass(list []engine.Piece, out bool) error
}

// move brings the buffers of a segment.
func (s *step) move(b *engine.Batch, list []transfer) error {
	var need int64
	for _, t := range list {
		need += s.bytesOf(t.buffer, b)
	}
	if int64(len(s.bounce)) < need {
		s.bounce = make([]byte, need)
	}
	free := s.bounce
	out, in := make([][]engine.Piece, len(s.dev.devices)), []engine.Piece(nil)
	for _, t := range list {
		n := s.bytesOf(t.buffer, b)
		if n == 0 {
			continue
		}
		if dev, ok := s.dev.devices[t.to.device].(peerReader); ok {
			ok, err := dev.Take(t.to.region, t.to.offset, t.from.region, t.from.offset, n)
			if err != nil {
				return fmt.Errorf("take over %s: %w", t.buffer.Name, err)
			}
			if ok {
				continue
			}
		}
		out[t.from.device] = append(out[t.from.device], engine.Piece{Region: t.from.region,
			Offset: t.from.offset, Host: free[:n]})
		in = append(in, engine.Piece{Region: t.to.region, Offset: t.to.offset, Host: free[:n]})
		free = free[n:]
	}
	for i, pieces := range out {
		if err := movePieces(s.dev.devices[i], pieces, true); err != nil {
			return fmt.Errorf("fetch what crosses: %w", err)
		}
	}
	if len(in) == 0 {
		return nil
	}
	if err := movePieces(s.dev.devices[list[0].to.device], in, false); err != nil {
		return fmt.Errorf("send what crosses: %w", err)
	}
	return nil
}

func (s *step) bytesOf(x *engine.Buffer, b *engine.Batch) int64 {
	rows := s.p.RowsIn(x, len(b.Tokens), len(b.LogitRows))
	return int64(rows) * int64(x.Width) * x.Type.Size()
}

func movePieces(dev engine.Device, list []engine.Piece, out bool) error {
	if d, ok := dev.(pieceMover); ok && len(list) > 0 {
		return d.Pass(list, out)
	}
	for _, x := range list {
		move := x.Region.Write
		if out {
			move = x.Region.Read
		}
		if err := move(x.Offset, x.Host); err != nil {
			return err
		}
	}
	return nil
}
