package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// What happened, as Event.What has it.
const (
	LoginOK           = "login_ok"
	LoginRefused      = "login_refused"
	Revoked           = "revoked"            // a connection was closed because its token is
	TopicCreated      = "topic_created"      // on purpose, or by naming it
	TopicDeleted      = "topic_deleted"      // with all its records
	PartitionsCreated = "partitions_created" // Partitions: the new width
	ConfigAltered     = "config_altered"     // Configs: which
	GroupDeleted      = "group_deleted"      // with its offsets
	OffsetsDeleted    = "offsets_deleted"    // Partitions: of how many
	dropped           = "dropped"            // Lines: how many lines are missing before this one
)

// Event is one line: who did what. Nothing of it is a token or a record.
type Event struct {
	Time    string `json:"time"` // UTC, RFC 3339 with milliseconds
	What    string `json:"event"`
	Tenant  string `json:"tenant,omitempty"`  // as the cell names it; empty: not logged in
	Label   string `json:"label,omitempty"`   // user name of the login; <redacted> where it looks like a key
	Address string `json:"address,omitempty"` // of the client
	Lane    string `json:"lane,omitempty"`    // the name the client dialled

	Mechanism string `json:"mechanism,omitempty"` // of a login
	Again     bool   `json:"again,omitempty"`     // of a connection that was logged in (KIP-368)
	Reason    string `json:"reason,omitempty"`    // why not, or why the outcome is not known

	API        string   `json:"api,omitempty"` // which did it
	Topic      string   `json:"topic,omitempty"`
	Group      string   `json:"group,omitempty"`
	Configs    []string `json:"configs,omitempty"`
	Partitions int      `json:"partitions,omitempty"`
	Unknown    bool     `json:"unknown,omitempty"` // the cell's answer was lost: it may have happened

	Lines int64 `json:"lines,omitempty"`
}

// Bounds of what clients choose, so that a line has one.
const (
	maxName    = 256 // bytes
	maxConfigs = 64
)

// line is the event as JSON with its line feed.
func (e Event) line(now time.Time) []byte {
	e.Time = now.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	e.Label, e.Topic, e.Group, e.Lane = cut(e.Label), cut(e.Topic), cut(e.Group), cut(e.Lane)
	if len(e.Configs) > maxConfigs {
		e.Configs = append(e.Configs[:maxConfigs:maxConfigs], "…")
	}
	for i, name := range e.Configs {
		if len(name) > maxName {
			e.Configs[i] = cut(name)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil { // of strings, numbers and truths: never
		return nil
	}
	return b.Bytes()
}

// cut bounds a text. JSON escapes what is below a space; what is above and no
// letter either (C1, marks that turn the direction of a line) becomes a question
// mark, for whoever reads the log in a terminal.
func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 0x7f && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) <= maxName {
		return s
	}
	end := maxName
	for end > maxName-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.ToValidUTF8(s[:end], "?") + "…"
}
