package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fields is an answer as paths and values. The entries of a list are named by
// what identifies them, so that another order is one difference and not many.
type fields struct {
	paths  []string // in the order of the answer
	values map[string]string
}

// orderSep stands between the labels of a list; no label holds it.
const orderSep = ", "

// present is the value of a list's entry itself.
const present = "present"

func flatten(resp kmsg.Response) *fields {
	f := &fields{values: map[string]string{}}
	if resp != nil {
		f.add("", reflect.ValueOf(resp).Elem())
	}
	return f
}

func (f *fields) set(path, value string) {
	f.paths = append(f.paths, path)
	f.values[path] = value
}

func (f *fields) add(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		f.addStruct(path, v)
	case reflect.Pointer:
		if v.IsNil() {
			f.set(path, "null")
			return
		}
		f.add(path, v.Elem())
	case reflect.Slice:
		f.addSlice(path, v)
	case reflect.String:
		f.set(path, strconv.Quote(v.String()))
	default:
		f.set(path, fmt.Sprint(v.Interface()))
	}
}

func (f *fields) addStruct(path string, v reflect.Value) {
	if path != "" {
		path += "."
	}
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; {
		case path == "" && name == "Version":
		case name == "UnknownTags":
			tags := v.Field(i).Interface().(kmsg.Tags)
			f.set(path+name, strconv.Itoa(tags.Len()))
		case name == "RecordBatches":
			f.addRecords(path, v)
		default:
			f.add(path+name, v.Field(i))
		}
	}
}

func (f *fields) addSlice(path string, v reflect.Value) {
	switch {
	case v.IsNil():
		f.set(path, "null")
		return
	case v.Type().Elem().Kind() != reflect.Struct:
		f.set(path, fmt.Sprint(v.Interface()))
		return
	}
	f.set(path, "list")
	var order []string
	for i := range v.Len() {
		label := labelOf(v.Index(i), i)
		for n := 2; slices.Contains(order, label); n++ {
			label = fmt.Sprintf("%s#%d", labelOf(v.Index(i), i), n)
		}
		order = append(order, label)
		entry := path + "[" + label + "]"
		f.set(entry, present)
		f.add(entry, v.Index(i))
	}
	f.set(path+".order", strings.Join(order, orderSep))
}

// labelOf names an entry by the field that identifies it.
func labelOf(v reflect.Value, i int) string {
	for _, name := range []string{"Topic", "Partition", "ApiKey", "Key", "Name", "NodeID", "MemberID", "Group", "TransactionalID"} {
		field := v.FieldByName(name)
		switch {
		case !field.IsValid():
		case field.Kind() == reflect.Pointer && field.IsNil():
			return "null"
		case name == "ApiKey":
			return kmsg.NameForKey(int16(field.Int()))
		default:
			return short(fmt.Sprint(reflect.Indirect(field).Interface()))
		}
	}
	return strconv.Itoa(i)
}

// short keeps long names readable and apart.
func short(name string) string {
	if n := len(name); n > 40 {
		return fmt.Sprintf("%s…%s(%d)", name[:4], name[n-1:], n)
	}
	return name
}

// addRecords shows the records of a fetched partition one by one, and what
// holds them: both sides may batch as they like, a record is a record.
func (f *fields) addRecords(path string, v reflect.Value) {
	p := v.Addr().Interface().(*kmsg.FetchResponseTopicPartition)
	if p.RecordBatches == nil {
		f.set(path+"RecordBatches", "null")
		return
	}
	f.set(path+"RecordBatches", "bytes")
	var codecs, epochs, producers []string
	for rest := p.RecordBatches; len(rest) > 0; {
		var b kmsg.RecordBatch
		if b.ReadFrom(rest) != nil || int(b.Length)+12 > len(rest) {
			break // the end of what was asked for may cut a batch
		}
		rest = rest[int(b.Length)+12:]
		codecs = append(codecs, strconv.Itoa(int(b.Attributes&7)))
		epochs = append(epochs, strconv.Itoa(int(b.PartitionLeaderEpoch)))
		producers = append(producers, fmt.Sprintf("%d/%d/%d", b.ProducerID, b.ProducerEpoch, b.FirstSequence))
	}
	f.set(path+"Batches.Codecs", strings.Join(codecs, ", "))
	f.set(path+"Batches.LeaderEpochs", strings.Join(epochs, ", "))
	f.set(path+"Batches.Producers", strings.Join(producers, ", "))
	part, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true}, p, kgo.DefaultDecompressor(), nil)
	for _, r := range part.Records {
		at := fmt.Sprintf("%sRecords[%d]", path, r.Offset)
		f.set(at, present)
		f.set(at+".Key", text(r.Key))
		f.set(at+".Value", text(r.Value))
		f.set(at+".Timestamp", strconv.FormatInt(r.Timestamp.UnixMilli(), 10))
		var headers []string
		for _, h := range r.Headers {
			headers = append(headers, h.Key+"="+text(h.Value))
		}
		f.set(at+".Headers", strings.Join(headers, " "))
	}
}

func text(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 64:
		return fmt.Sprintf("%q… %d bytes", b[:8], len(b))
	}
	return strconv.Quote(string(b))
}

// difference is one path at which two answers are not the same.
type difference struct {
	where  where
	path   string
	ours   string
	theirs string
}

// where is the request that showed a difference.
type where struct {
	api     string
	version int16
	name    string // of the case
}

func (w where) String() string { return fmt.Sprintf("%s v%d %s", w.api, w.version, w.name) }

const absent = "absent"

// common are the labels of a that b has, too.
func common(a, b string) string {
	others := strings.Split(b, orderSep)
	return strings.Join(slices.DeleteFunc(strings.Split(a, orderSep), func(label string) bool { return !slices.Contains(others, label) }), orderSep)
}

// compare lists the paths at which two answers differ. Below an entry that one
// of them lacks nothing is compared.
func compare(w where, ours, theirs *fields) []difference {
	var out []difference
	var gone []string
	paths := ours.paths
	for _, p := range theirs.paths {
		if _, both := ours.values[p]; !both {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		if slices.ContainsFunc(gone, func(g string) bool { return strings.HasPrefix(p, g) }) {
			continue
		}
		a, inOurs := ours.values[p]
		b, inTheirs := theirs.values[p]
		if !inOurs {
			a = absent
		}
		if !inTheirs {
			b = absent
		}
		if inOurs != inTheirs {
			gone = append(gone, p+".")
		}
		if inOurs != inTheirs && strings.HasSuffix(p, ".order") {
			continue // so is the list
		}
		if inOurs && inTheirs && strings.HasSuffix(p, ".order") {
			a, b = common(a, b), common(b, a)
		}
		if a != b {
			out = append(out, difference{where: w, path: p, ours: a, theirs: b})
		}
	}
	return out
}
