package batch

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain proves that no codec leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
