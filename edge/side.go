package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/queen-mq/queen-edge/tenancy"
)

// Bounds of the side listener. Only operators reach it, but a scraper that hangs
// must not hold anything for ever.
const (
	sideHeaderTimeout = 5 * time.Second
	sideTimeout       = 30 * time.Second
	sideHeaderBytes   = 16 << 10
)

// ServeSide answers operators on ln until ctx ends (B7): /livez says that the
// process runs, /readyz whether new connections are welcome, /metrics counts
// (with a bearer, where QUEEN_KAFKA_ADMIN_TOKEN is set). It closes ln.
//
// Let it outlive Serve: during a drain /readyz must be there to say no.
func (s *Server) ServeSide(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.side(),
		ReadHeaderTimeout: sideHeaderTimeout, ReadTimeout: sideTimeout, WriteTimeout: sideTimeout,
		IdleTimeout: sideTimeout, MaxHeaderBytes: sideHeaderBytes,
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(ln)
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return err
}

// side routes the operators' requests.
func (s *Server) side() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			say(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		say(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", guard(s.cfg.AdminToken, s.metrics.page()))
	if s.cfg.AdminPprof && !s.cfg.AdminToken.IsZero() {
		mux.Handle("GET /debug/pprof/", guard(s.cfg.AdminToken, profiles()))
	}
	return mux
}

// profiles are Go's own. A profile of n seconds (?seconds=n) must be over within
// sideTimeout.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// guard lets through who presents the token; none set: everybody.
func guard(token tenancy.Secret, next http.Handler) http.Handler {
	if token.IsZero() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || !token.Equal(tenancy.NewSecret(bearer)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			say(w, http.StatusUnauthorized, "a bearer token is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}
