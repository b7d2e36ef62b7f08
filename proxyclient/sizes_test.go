package proxyclient

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]PartitionSize{
		`{"queue":"orders","partitions":{"0":1204,"2":88},"truncated":true}`: {{0, 1204}, {2, 88}},
		`{"partitions":{}}`: nil,
		`{}`:                nil,
		`{"partitions":{"Default":7,"01":7,"+1":7,"-1":7,"2147483648":7,"1":0}}`: {{1, 0}},
	} {
		c, cell := talk(t, says(body))
		got, err := c.Sizes(t.Context(), testScope(t), "a b/ü")
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
		if h := cell.last(t); h.method != "GET" || h.uri != "/api/v1/resources/queues/a%20b%2F%C3%BC/sizes" || h.body != "" {
			t.Errorf("%+v", h)
		}
	}
	for _, body := range []string{``, `[]`, `{"partitions":[]}`, `{"partitions":{"0":"7"}}`, `{"partitions":{"0":-1}}`, `{"partitions":{"0":1}}x`} {
		c, _ := talk(t, says(body))
		_, err := c.Sizes(t.Context(), testScope(t), "q")
		mustError(t, err, KindBody)
	}
	c, cell := talk(t, says(`{}`))
	for _, queue := range []string{"", ".", ".."} { // would name another resource
		_, err := c.Sizes(t.Context(), testScope(t), queue)
		mustError(t, err, KindBody)
	}
	if n := len(cell.requests()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// A cell that knows only the long form is asked for that; partitions without a
// name or a size are passed over.
func TestSizesOfAnOlderCell(t *testing.T) {
	t.Parallel()
	long := `{"name":"orders","partitions":[{"name":"0","retainedBytes":1204,"x":[1]},{"name":"1"},{"retainedBytes":5},{"name":7,"retainedBytes":5},
		{"name":"3","retainedBytes":"5"},{"name":"4","retainedBytes":-5},{"name":"Default","retainedBytes":5},{"retainedBytes":9,"name":"2"}]}`
	c, cell := talk(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sizes") {
			refuses(404, `{"code":"no_such_route"}`)(w, r)
			return
		}
		says(long)(w, r)
	})
	got, err := c.Sizes(t.Context(), testScope(t), "orders")
	if want := []PartitionSize{{0, 1204}, {2, 9}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if h := cell.last(t); h.uri != "/api/v1/resources/queues/orders" {
		t.Errorf("%+v", h)
	}

	c, _ = talk(t, refuses(404, `{}`))
	if _, err := c.Sizes(t.Context(), testScope(t), "orders"); !errors.Is(err, ErrNoSizes) {
		t.Errorf("a cell with neither route: %v", err)
	}
	c, cell = talk(t, refuses(403, `{"error":"no","code":"forbidden"}`))
	_, err = c.Sizes(t.Context(), testScope(t), "orders")
	mustError(t, err, KindStatus)
	if n := len(cell.requests()); n != 1 {
		t.Errorf("%d calls after a refusal", n)
	}
}
