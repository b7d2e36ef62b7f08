package api

import (
	"regexp"
	"testing"
)

// What a client may call itself is what KIP-511 says.
func TestSoftwareText(t *testing.T) {
	kip := regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)
	parts := []string{"", "a", "Z", "0", "-", ".", " ", "\n", "/", ":", "@", "[", "`", "{", "é", "\x00", "\xff"}
	taken := 0
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				s := a + b + c
				if isSoftwareText(s) != kip.MatchString(s) {
					t.Errorf("%q is taken: %v", s, isSoftwareText(s))
				}
				if kip.MatchString(s) {
					taken++
				}
			}
		}
	}
	if taken == 0 {
		t.Error("none of the texts is good")
	}
}
