package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// shape is how a request is laid out at every version, so that a body can be
// walked, counted and weighed before kmsg takes memory for it.
type shape struct {
	flexible int16 // first flexible version (KIP-482)
	fields   []field
	tags     []field // tags that kmsg reads itself
}

// field is one field of a struct.
type field struct {
	kind     fieldKind
	min, max int16 // versions that have it
	size     int   // fixed: bytes on the wire; list: of one entry in memory; bytes: factor; known tag: its number
	fields   []field
	tags     []field
}

type fieldKind uint8

const (
	fixedField      fieldKind = iota
	stringField               // may be empty, never null
	nullableField             // a string that kmsg keeps behind a pointer
	bytesField                // kmsg keeps them where they lie
	structField               // of a known tag
	nullStructField           // a byte says whether it is there
	listField                 // of structs
	plainListField            // of what has no tags
)

const neverFlexible = math.MaxInt16

// newShape reads a description, fields in their order on the wire:
//
//	4          so many bytes
//	s  n  b    a string, a string that may be null, bytes
//	b4         bytes of which each takes another 4 in memory
//	[96: …]    a list of structs; one takes 96 bytes in memory beside its strings
//	(16: s)    a list of plain values; one takes 16 bytes
//	{…}        a struct in a known tag
//	?{…}       a struct that may be null
//	#1:…       a known tag, after the fields of its struct
//
// The memory of an entry is what kmsg decodes and what the handler makes for it
// together. A field, list or tag ends with its versions where not every one has
// it: @3 from, @-12 until, @7-12 both. It panics where the description is wrong,
// which any test shows.
func newShape(flexible int16, text string) *shape {
	p := &shapeText{words: strings.Fields(text)}
	s := &shape{flexible: flexible}
	s.fields, s.tags = p.fields("")
	return s
}

// shapeText is a description being read.
type shapeText struct{ words []string }

func (p *shapeText) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// fields reads up to the word that ends a struct or the text, without versions.
func (p *shapeText) fields(end string) (fields, tags []field) {
	for len(p.words) > 0 {
		if end != "" && strings.HasPrefix(p.words[0], end) {
			return fields, tags
		}
		w := p.next()
		rest, known := strings.CutPrefix(w, "#")
		if !known {
			fields = append(fields, p.field(w))
			continue
		}
		number, w, _ := strings.Cut(rest, ":")
		tag := p.field(w)
		tag = field{kind: structField, min: tag.min, max: tag.max, size: atoi(number), fields: []field{tag}}
		tags = append(tags, tag)
	}
	if end != "" {
		panic("api: a shape lacks " + end)
	}
	return fields, tags
}

func (p *shapeText) field(word string) field {
	f := field{}
	switch word[0] {
	case '[', '(':
		f.kind = listField
		end := "]"
		if word[0] == '(' {
			f.kind, end = plainListField, ")"
		}
		f.size = atoi(strings.TrimSuffix(word[1:], ":"))
		f.fields, f.tags = p.fields(end)
		word = p.next()
	case '?':
		f.kind = nullStructField
		f.fields, f.tags = p.fields("}")
		word = p.next()
	case '{':
		f.kind = structField
		f.fields, f.tags = p.fields("}")
		word = p.next()
	case 's':
		f.kind = stringField
	case 'n':
		f.kind = nullableField
	case 'b':
		f.kind = bytesField
		if factor, _, _ := strings.Cut(word[1:], "@"); factor != "" {
			f.size = atoi(factor)
		}
	default:
		size, _, _ := strings.Cut(word, "@")
		f.size = atoi(size)
	}
	_, versions, _ := strings.Cut(word, "@")
	f.min, f.max = versionsOf(versions)
	return f
}

func versionsOf(text string) (lowest, highest int16) {
	from, until, both := strings.Cut(text, "-")
	lowest, highest = 0, math.MaxInt16
	if from != "" {
		lowest = int16(atoi(from))
	}
	if both {
		highest = int16(atoi(until))
	}
	return lowest, highest
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		panic(fmt.Sprintf("api: %q in a shape is no number", text))
	}
	return n
}
