package ports

import (
	"errors"
	"os"
	"syscall"
)

type holder = *os.File

// hold binds a socket that never listens. Linux lets another that allows it as
// well (SO_REUSEADDR, as every listener of Go and Java does) bind and listen
// beside it, and skips the port where it chooses one itself.
func hold() (h holder, port int, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socket", err)
	}
	h = os.NewFile(uintptr(fd), "kept port")
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return nil, 0, errors.Join(os.NewSyscallError("bind", err), h.Close())
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, 0, errors.Join(os.NewSyscallError("getsockname", err), h.Close())
	}
	return h, at.(*syscall.SockaddrInet4).Port, nil
}
