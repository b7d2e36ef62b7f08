package catalog

import "strings"

// maxName is the longest topic name (Kafka's own limit).
const maxName = 249

// Legal reports whether Kafka can express a topic name: 1–249 of
// [A-Za-z0-9._-], neither "." nor "..".
func Legal(name string) bool {
	if name == "" || len(name) > maxName || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.' || c == '_' || c == '-':
		default:
			return false
		}
	}
	return true
}

// Reserved reports whether a name is one of those that do not exist for any
// client: by prefix, not by a list (kafka-surface §6.2).
func Reserved(name string) bool { return strings.HasPrefix(name, "__") }
