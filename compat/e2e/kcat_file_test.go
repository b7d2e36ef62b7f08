package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queen-mq/queen-edge/compat/rig"
	"github.com/queen-mq/queen-edge/edge/batch"
)

// A large text file goes in line by line, and comes out as it was.
func TestKcatCarriesAFile(t *testing.T) {
	kcat := needKcat(t)
	r := rig.Start(t)
	path := filepath.Join(t.TempDir(), "lines.txt")
	lines, want := writeGoSource(t, path)
	k := kcat.as(t, r, rig.Acme)

	// The file is opened as standard input: kcat reads it line by line.
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	k.run(in, "-P", "-t", "file", "-p", "0", "-X", "enable.idempotence=true", "-z", "zstd")
	if n := r.Gateway.Stats().Batches(batch.Zstd); n == 0 {
		t.Error("no batch arrived compressed")
	}

	sum := sha256.New()
	counted := &lineCounter{w: sum}
	k.stream(counted, "-C", "-t", "file", "-p", "0", "-o", "beginning", "-e", "-q")
	if got := hex.EncodeToString(sum.Sum(nil)); got != want || counted.lines != lines {
		t.Errorf("read %d lines with SHA-256 %s, want %d lines with %s", counted.lines, got, lines, want)
	}
}

// lineCounter counts lines on their way to w.
type lineCounter struct {
	w     io.Writer
	lines int
}

func (c *lineCounter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	return c.w.Write(p)
}

// writeGoSource writes Go's own sources, in sorted order and without their empty
// lines, again and again until the file is large enough.
func writeGoSource(t *testing.T, path string) (lines int, sum string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	sources := goFiles(t, filepath.Join(strings.TrimSpace(string(root)), "src"))
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(f, hash), 1<<20)
	for size := 0; size < fileSize; {
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(text) {
				line = bytes.TrimSuffix(line, []byte("\n"))
				if len(line) == 0 {
					continue
				}
				n, _ := out.Write(append(line, '\n'))
				size += n
				lines++
			}
			if size >= fileSize {
				break
			}
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return lines, hex.EncodeToString(hash.Sum(nil))
}

// goFiles lists the Go files below a folder, sorted.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".go" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go sources below %s: %v", root, err)
	}
	return files // WalkDir walks in lexical order
}
