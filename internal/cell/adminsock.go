package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/queen-mq/queen-edge/internal/cell/control"
)

// AdminSocket is the unix socket inside the data folder at which a running cell
// takes administrative acts from its own user, and from nobody else.
const AdminSocket = "admin.sock"

const (
	adminPath      = "/admin"
	maxAdminBytes  = 1 << 20 // of a request
	adminTimeout   = 10 * time.Second
	adminDrainTime = 2 * time.Second
)

// Administrator does administrative acts, in this process or in another one.
type Administrator interface {
	Do(AdminRequest) (AdminResponse, error)
	Close() error
}

// Close lets go of the folder, where OpenAdmin has opened it.
func (a *Admin) Close() error { return nil }

// folderAdmin is an Admin on a folder on which no cell runs.
type folderAdmin struct {
	*Admin
	folder io.Closer
}

func (f *folderAdmin) Close() error { return f.folder.Close() }

// OpenAdmin administrates a data folder: through the cell that runs on it, or
// else on the folder itself. With create, a folder that is not there is made.
func OpenAdmin(dir string, create bool) (Administrator, error) {
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("cell: %w", err)
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("cell: %s is no data folder", dir)
	}
	remote := newAdminClient(filepath.Join(dir, AdminSocket))
	switch err := remote.ping(); {
	case err == nil:
		return remote, nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("cell: %s does not answer: %w", AdminSocket, err)
	}
	folder, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("%w (and it has no %s)", err, AdminSocket)
	}
	store, err := control.Open(dir, nil)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &folderAdmin{
		Admin:  &Admin{control: store, clock: time.Now, usage: usageFiles{dir: filepath.Join(dir, usageFolder)}},
		folder: folder,
	}, nil
}

// adminClient speaks to the cell that runs on a folder.
type adminClient struct {
	path string
	http *http.Client
}

func newAdminClient(path string) *adminClient {
	c := &adminClient{path: path}
	c.http = &http.Client{Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true}, Timeout: adminTimeout}
	return c
}

func (c *adminClient) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", c.path)
}

// ping finds out whether anybody listens.
func (c *adminClient) ping() error {
	conn, err := net.DialTimeout("unix", c.path, adminTimeout)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Do implements Administrator.
func (c *adminClient) Do(r AdminRequest) (AdminResponse, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return AdminResponse{}, fmt.Errorf("cell: %w", err)
	}
	resp, err := c.http.Post("http://cell"+adminPath, "application/json", bytes.NewReader(body))
	if err != nil {
		return AdminResponse{}, fmt.Errorf("cell: %w", err)
	}
	var answer struct {
		AdminResponse
		Error string `json:"error"`
	}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	switch err = errors.Join(err, resp.Body.Close()); {
	case err != nil:
		return AdminResponse{}, fmt.Errorf("cell: %s: %w", AdminSocket, err)
	case resp.StatusCode != http.StatusOK:
		return AdminResponse{}, errors.New(answer.Error)
	}
	return answer.AdminResponse, nil
}

// Close implements Administrator.
func (c *adminClient) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// openAdmin makes the socket, before anybody is told that the cell is there; acts
// wait in its backlog until the cell serves. A folder whose path is too long for
// a socket has none: the cell serves all the same.
func (c *Cell) openAdmin() {
	ln, err := listenAdmin(filepath.Join(c.cfg.Dir, AdminSocket))
	if err != nil {
		c.log.Warn("no admin socket: stop the cell to administrate its folder", zap.Error(err))
		return
	}
	c.admin = ln
}

// closeAdmin takes the socket away; one that served is closed already.
func (c *Cell) closeAdmin() error {
	if c.admin == nil {
		return nil
	}
	if err := c.admin.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serveAdmin takes acts at the socket until stop is called, which waits for its
// end.
func (c *Cell) serveAdmin() (stop func()) {
	if c.admin == nil {
		return func() {}
	}
	server := &http.Server{
		Handler: adminHandler{c.Admin()}, ReadTimeout: adminTimeout, WriteTimeout: adminTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: zap.NewStdLog(c.log),
	}
	ended := make(chan error, 1)
	go accept(server, c.admin, ended)
	return func() { c.endAdmin(server, ended) }
}

func (c *Cell) endAdmin(server *http.Server, ended <-chan error) {
	grace, cancel := context.WithTimeout(context.Background(), adminDrainTime)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		c.log.Warn("the admin socket was cut off", zap.Error(errors.Join(err, server.Close())))
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		c.log.Warn("the admin socket failed", zap.Error(err))
	}
}

// listenAdmin makes the socket. One that is there is of a cell that was killed:
// this process has the folder's lock. It is made in a folder of its own that
// nobody else may enter, so that it is never open to others, not for a moment.
func listenAdmin(path string) (net.Listener, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), ".admin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private) //nolint:errcheck // it is empty by then
	made := filepath.Join(private, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // it would look for the name it was made under
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return unlinking{Listener: ln, path: path}, nil
}

// unlinking is a listener that takes its name along.
type unlinking struct {
	net.Listener
	path string
}

func (u unlinking) Close() error {
	err := u.Listener.Close()
	if gone := os.Remove(u.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return errors.Join(err, gone)
	}
	return err
}

// adminHandler answers acts.
type adminHandler struct{ admin *Admin }

func (h adminHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != adminPath {
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
		return
	}
	var act AdminRequest
	from := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBytes))
	from.DisallowUnknownFields()
	if err := from.Decode(&act); err != nil {
		answerAdmin(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	done, err := h.admin.Do(act)
	if err != nil {
		answerAdmin(w, adminStatus(err), map[string]string{"error": err.Error()})
		return
	}
	answerAdmin(w, http.StatusOK, done)
}

// answerAdmin writes an answer; one that cannot be written has no reader.
func answerAdmin(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
