package proxyclient

import (
	"io"
	"net/http"
	"testing"
)

func TestCapabilities(t *testing.T) {
	for header, want := range map[string]int{
		"": 0, "txn-kv=1024": 1024, " TXN-KV=70 ,push-dedup": 70, "push-dedup, txn-kv=5": 5, "txn-kv": 0, "txn-kv=": 0,
		"txn-kv=0": 0, "txn-kv=-1": 0, "txn-kv=many": 0, "txn-kv=99999999": mostTxnOps, "txn-kv=99999999999999999999": 0,
		"txn-kvs=7": 0, "txn-kv=7=8": 0,
	} {
		h := http.Header{"X-Queen-Capabilities": {header}}
		if got := capabilities(h); got.TxnKV != want {
			t.Errorf("%q: %d, want %d", header, got.TxnKV, want)
		}
	}
	if got := capabilities(http.Header{"X-Queen-Capabilities": {"push-dedup", "txn-kv=9"}}); got.TxnKV != 9 {
		t.Errorf("in the second line: %d", got.TxnKV)
	}
	if got := capabilities(nil); got.TxnKV != 0 {
		t.Errorf("without a header: %d", got.TxnKV)
	}
}

// What a cell announces holds for the credential that it was told, and until it
// announces something else; never less than the contract's.
func TestTxnOps(t *testing.T) {
	t.Parallel()
	announce := "txn-kv=1024"
	c, _ := talk(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Queen-Capabilities", announce)
		_, _ = io.WriteString(w, `{"queues":[]}`)
	})
	one, other := scopeOf(t, "one-"+testBearer, ""), scopeOf(t, "other-"+testBearer, "")
	want := func(when string, first, second int) {
		t.Helper()
		if a, b := c.TxnOps(one), c.TxnOps(other); a != first || b != second {
			t.Errorf("%s: %d and %d, want %d and %d", when, a, b, first, second)
		}
	}
	list := func() {
		t.Helper()
		if _, err := c.ListQueues(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	want("before any listing", contractTxnOps, contractTxnOps)
	list()
	want("announced to one", 1024, contractTxnOps)
	announce = "txn-kv=3"
	list()
	want("less than the contract", contractTxnOps, contractTxnOps)
	announce = "txn-kv=2000"
	list()
	want("more again", 2000, contractTxnOps)
	announce = ""
	list()
	want("no more", contractTxnOps, contractTxnOps)
}
