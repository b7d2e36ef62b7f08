package tlsconf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// Entry is a pair of a folder, by the name or *.suffix that its files stand for.
type Entry struct {
	Name     string
	CertFile string
	src      *source
}

// Load reads and checks the pair. An error names the variable and the file.
func (e Entry) Load() (*Pair, error) { return loadPair(e.src) }

// Entries are the pairs of a folder, by name. Files that are no pair are left
// out.
func Entries(dir string) ([]Entry, error) {
	found, _, err := pairsOf(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file{dirVariable, dir}, err)
	}
	var out []Entry
	for name, stem := range found {
		src := folderSource(dir, stem)
		out = append(out, Entry{Name: name, CertFile: src.files[0].path, src: src})
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// sourceOf is the files of a name.
func (s *Store) sourceOf(name, stem string) *source {
	src := s.dir[name]
	if src == nil {
		src = folderSource(s.cfg.Dir, stem)
		s.dir[name] = src
	}
	return src
}

func folderSource(dir, stem string) *source {
	path := filepath.Join(dir, stem)
	return &source{files: []file{{dirVariable, path + certEnding}, {dirVariable, path + keyEnding}}}
}

// Endings of the files of a pair.
const (
	certEnding = ".crt"
	keyEnding  = ".key"
)

// maxPairs bounds the folder: each pair is a series of the metrics, and is read
// at every look.
const maxPairs = 1000

// list finds the pairs of the folder: their stems by name. A file whose other
// half is missing is told of once, and left alone.
func (s *Store) list() (map[string]string, error) {
	found, lone, err := pairsOf(s.cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, stem := range lone {
		_, isName := pairName(stem)
		s.tellLone(stem, isName)
	}
	return found, nil
}

// pairsOf reads a folder: the stems of pairs by name, and the stems of what is
// none.
func pairsOf(path string) (found map[string]string, lone []string, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	defer dir.Close() //nolint:errcheck // only read
	// One more than fits, and room for what else lies about.
	names, err := dir.Readdirnames(4 * maxPairs)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, withoutPath(err)
	}
	halves := map[string]int{}
	for _, name := range names {
		for half, ending := range [...]string{certEnding, keyEnding} {
			if stem, ok := strings.CutSuffix(name, ending); ok {
				halves[stem] |= half + 1
			}
		}
	}
	found = map[string]string{}
	for stem, have := range halves {
		name, ok := pairName(stem)
		switch {
		case !ok || have != 3:
			lone = append(lone, stem)
		case found[name] == "" || stem < found[name]:
			found[name] = stem
		}
	}
	if len(found) > maxPairs || len(names) == 4*maxPairs {
		return nil, nil, fmt.Errorf("holds more than %d pairs, or %d files", maxPairs, 4*maxPairs)
	}
	return found, lone, nil
}

func (s *Store) tellLone(stem string, isName bool) {
	if s.lone[stem] || len(s.lone) > maxPairs || strings.HasPrefix(stem, ".") {
		return
	}
	s.lone[stem] = true
	reason := "it is half of a pair <name>.crt and <name>.key"
	if !isName {
		reason = "its name is neither that of a host nor _wildcard.<suffix>"
	}
	s.log.Warn("a file of "+dirVariable+" is not used: "+reason, zap.String("file", filepath.Join(s.cfg.Dir, stem)+".*"))
}
