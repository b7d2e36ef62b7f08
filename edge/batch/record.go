package batch

// Header is one record header. Order and duplicate names matter; a nil Value is
// null, an empty one is empty.
type Header struct {
	Key   []byte // UTF-8
	Value []byte
}

// Record is one record. Its slices alias a buffer of whoever made it and are
// valid as long as that one says.
type Record struct {
	Offset    int64  // absolute
	Timestamp int64  // CreateTime in ms; −1 is none
	Key       []byte // nil is null
	Value     []byte // nil is null (a tombstone)
	Headers   []Header
}
