package store

import "fmt"

const (
	// joinGap and joinBytes bound what is read at once: blobs that lie close
	// behind each other cost one read.
	joinGap   = 4 << 10
	joinBytes = 8 << 20
)

// Read appends the blobs at refs to dst. Neighbours share one buffer, which is
// the caller's. ErrGone means that a row was outdated: look it up again.
func (s *Store) Read(refs []Ref, dst [][]byte) ([][]byte, error) {
	for len(refs) > 0 {
		n := neighbours(refs)
		var err error
		if dst, err = s.readRun(refs[:n], dst); err != nil {
			return dst, err
		}
		refs = refs[n:]
	}
	return dst, nil
}

// neighbours is how many refs from the first on are read at once.
func neighbours(refs []Ref) int {
	first, end := refs[0], refs[0].Pos+int64(refs[0].Len)
	for i, r := range refs[1:] {
		gap := r.Pos - end
		if r.Segment != first.Segment || gap < 0 || gap > joinGap || r.Pos+int64(r.Len)-first.Pos > joinBytes {
			return i + 1
		}
		end = r.Pos + int64(r.Len)
	}
	return len(refs)
}

func (s *Store) readRun(refs []Ref, dst [][]byte) ([][]byte, error) {
	seg := s.log.acquire(refs[0].Segment)
	if seg == nil {
		return dst, ErrGone
	}
	defer s.log.release(seg)
	from, last := refs[0].Pos, refs[len(refs)-1]
	end := last.Pos + int64(last.Len)
	if end > seg.size {
		return dst, fmt.Errorf("the index points behind the end of segment %d", seg.number)
	}
	buf := make([]byte, end-from)
	if err := readFull(seg, buf, from); err != nil {
		return dst, err
	}
	for _, r := range refs {
		b := buf[r.Pos-from:][:r.Len:r.Len]
		if Checksum(b) != r.CRC {
			return dst, fmt.Errorf("segment %d is damaged at %d: the checksum of %d bytes is wrong", seg.number, r.Pos, r.Len)
		}
		dst = append(dst, b)
	}
	return dst, nil
}
