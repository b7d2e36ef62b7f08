package store

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// inOrder lists the segments by number, from number from on.
func (l *log) inOrder(from uint64) []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*segment
	for number, s := range l.segments {
		if number >= from {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	return list
}

// scan gives the entries of s from pos on, the first having sequence number
// seq, until there is none. It returns the position and number of the next.
func (l *log) scan(s *segment, pos int64, seq uint64, visit func(*Entry) error) (int64, uint64, error) {
	var head, data []byte
	var sizes []blobSize
	for pos+entryHeader <= s.size {
		head = grow(head, entryHeader)
		if err := readFull(s, head, pos); err != nil {
			return pos, seq, err
		}
		p, err := parseHeader(head, s.number, seq, s.size-pos)
		if err != nil {
			return pos, seq, nil
		}
		head = grow(head, entryHeader+int(p.blobs)*blobRow+int(p.meta))
		if err := readFull(s, head, pos); err != nil {
			return pos, seq, err
		}
		e, err := parseRest(p, head, pos, sizes[:0])
		if err != nil {
			return pos, seq, nil
		}
		sizes = e.sizes
		data = grow(data, int(p.data))
		if err := readFull(s, data, e.blobsAt()); err != nil {
			return pos, seq, err
		}
		e.data = data
		for i := range e.sizes {
			if b := e.Blob(i); Checksum(b.Data) != b.CRC {
				return pos, seq, nil
			}
		}
		if err := visit(&e); err != nil {
			return pos, seq, err
		}
		pos, seq = e.end(), seq+1
	}
	return pos, seq, nil
}

// readFull reads exactly len(b) bytes; behind the end of the file are zeros.
func readFull(s *segment, b []byte, pos int64) error {
	n, err := s.file.ReadAt(b, pos)
	if err == io.EOF {
		clear(b[n:])
		err = nil
	}
	if err != nil {
		return fmt.Errorf("read %s at %d: %w", s.name, pos, err)
	}
	return nil
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, n+n/4)
	}
	return b[:n]
}

// Scan gives the entries of a segment in order until visit reports an error,
// which Scan returns. It returns ErrGone when the segment is not in use.
func (s *Store) Scan(number uint64, visit func(*Entry) error) error {
	seg := s.log.acquire(number)
	if seg == nil {
		return ErrGone
	}
	defer s.log.release(seg)
	_, _, err := s.log.scan(seg, segmentHeader, seg.first, func(e *Entry) error {
		select {
		case <-s.stop:
			return ErrClosed
		default:
			return visit(e)
		}
	})
	return err
}
