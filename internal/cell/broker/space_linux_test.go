package broker

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestStorageFullOnTmpfs is TestStorageFull on a real file system that is full:
// a file of ballast leaves as much as the test wants.
func TestStorageFullOnTmpfs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=330m"); err != nil {
		if os.Getenv("QE_REQUIRE") != "" {
			t.Fatalf("mount: %v", err)
		}
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ballast.Close(); err != nil {
			t.Error(err)
		}
	})
	available := func() int64 {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(dir, &fs); err != nil {
			t.Fatal(err)
		}
		return int64(fs.Bavail) * fs.Bsize
	}
	storageFull(t, vfs.Default, filepath.Join(dir, "data"), func(mib uint64) {
		t.Helper()
		if err := ballast.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if weight := available() - int64(mib)<<20; weight > 0 {
			if err := syscall.Fallocate(int(ballast.Fd()), 0, 0, weight); err != nil {
				t.Fatal(err)
			}
		}
	})
}
