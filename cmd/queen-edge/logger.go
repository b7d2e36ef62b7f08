package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger writes to w: console lines, or JSON. level is one that the
// configuration has checked; "off" is silence.
func newLogger(w io.Writer, level string, json bool) *zap.Logger {
	if level == "off" {
		return zap.NewNop()
	}
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		at = zapcore.InfoLevel
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewConsoleEncoder(encoding)
	if json {
		encoder = zapcore.NewJSONEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), at))
}
