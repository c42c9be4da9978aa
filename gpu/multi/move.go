package multi

import (
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// What crosses a cut: the rows that the batch has, of each buffer that the next stretch reads.

// taker is a device that takes bytes out of another one's memory without the host; false where it
// cannot.
type taker interface {
	Take(to engine.Region, at int64, from engine.Region, fromAt, bytes int64) (bool, error)
}

// reader and writer are devices that move several pieces with one wait.
type (
	reader interface {
		ReadPieces([]engine.Piece) error
	}
	writer interface {
		WritePieces([]engine.Piece) error
	}
)

// move brings the buffers of a stretch.
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
		taken := false
		if dev, ok := s.dev.devices[t.to.on].(taker); ok {
			var err error
			if taken, err = dev.Take(t.to.region, t.to.offset, t.from.region, t.from.offset,
				n); err != nil {
				return fmt.Errorf("take over %s: %w", t.buffer.Name, err)
			}
		}
		if taken {
			continue
		}
		out[t.from.on] = append(out[t.from.on], engine.Piece{Region: t.from.region,
			Offset: t.from.offset, Host: free[:n]})
		in = append(in, engine.Piece{Region: t.to.region, Offset: t.to.offset, Host: free[:n]})
		free = free[n:]
	}
	for on, pieces := range out {
		if err := s.readPieces(on, pieces); err != nil {
			return fmt.Errorf("fetch what crosses: %w", err)
		}
	}
	if len(in) == 0 {
		return nil
	}
	if err := s.writePieces(list[0].to.on, in); err != nil {
		return fmt.Errorf("send what crosses: %w", err)
	}
	return nil
}

func (s *step) bytesOf(x *engine.Buffer, b *engine.Batch) int64 {
	rows := s.p.RowsIn(x, len(b.Tokens), len(b.LogitRows))
	return int64(rows) * int64(x.Width) * x.Type.Size()
}

func (s *step) readPieces(on int, list []engine.Piece) error {
	if dev, ok := s.dev.devices[on].(reader); ok && len(list) > 0 {
		return dev.ReadPieces(list)
	}
	for _, x := range list {
		if err := x.Region.Read(x.Offset, x.Host); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) writePieces(on int, list []engine.Piece) error {
	if dev, ok := s.dev.devices[on].(writer); ok {
		return dev.WritePieces(list)
	}
	for _, x := range list {
		if err := x.Region.Write(x.Offset, x.Host); err != nil {
			return err
		}
	}
	return nil
}
