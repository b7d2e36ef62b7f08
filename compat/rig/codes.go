package rig

import (
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/queen-mq/queen-edge/edge/api"
)

// checkCodes fails the test when a response carries an error code that its row
// of the table does not declare: an undeclared one kills some client.
func checkCodes(tb testing.TB, resp kmsg.Response) {
	tb.Helper()
	table := api.Table()
	i := slices.IndexFunc(table, func(r api.Row) bool { return r.Key == resp.Key() })
	if i < 0 {
		tb.Errorf("%s was answered and is not in the table", kmsg.NameForKey(resp.Key()))
		return
	}
	for _, code := range ErrorCodes(resp) {
		if code != 0 && !slices.Contains(table[i].Codes, code) {
			tb.Errorf("%s v%d answered code %d, which its row does not declare", table[i].Name, resp.GetVersion(), code)
		}
	}
}

// ErrorCodes are the error codes a response carries, at every level.
func ErrorCodes(resp kmsg.Response) []int16 {
	return appendCodes(nil, reflect.ValueOf(resp).Elem())
}

func appendCodes(codes []int16, v reflect.Value) []int16 {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			codes = appendCodes(codes, v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return codes
		}
		for i := range v.Len() {
			codes = appendCodes(codes, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Name == "ErrorCode":
				codes = append(codes, int16(v.Field(i).Int()))
			case f.IsExported():
				codes = appendCodes(codes, v.Field(i))
			}
		}
	}
	return codes
}
