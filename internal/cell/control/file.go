package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FileName is the control file inside the data folder.
const FileName = "control.json"

// readDocument reads the control file; a missing one is an empty document.
func readDocument(dir string) (document, error) {
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{Version: formatVersion}, nil
	}
	if err != nil {
		return document{}, fmt.Errorf("control: %w", err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return document{}, fmt.Errorf("control: %s: %w", path, err)
	}
	if doc.Version != formatVersion {
		return document{}, fmt.Errorf("control: %s has version %d, this program reads %d", path, doc.Version, formatVersion)
	}
	return doc, nil
}

// replaceDocument puts doc in the place of the control file. replaced says
// that a reader, or the next boot, may already see the new one, even beside
// an error.
func replaceDocument(dir string, doc document) (replaced bool, err error) {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return false, fmt.Errorf("control: %w", err)
	}
	path := filepath.Join(dir, FileName)
	next := path + ".next"
	if err := writeSynced(next, append(text, '\n')); err != nil {
		return false, fmt.Errorf("control: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return false, fmt.Errorf("control: %w", err)
	}
	// The rename is durable once the folder is.
	if err := syncDir(dir); err != nil {
		return true, fmt.Errorf("control: %w", err)
	}
	return true, nil
}

// writeSynced writes a file that only its owner reads, down to the disk.
func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the folder's entries durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
