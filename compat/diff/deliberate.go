package main

// entry is a difference that is meant. Where several match, the first counts;
// one that never matches fails the run. In Path, Ours and Theirs * stands for
// anything and | separates alternatives.
type entry struct {
	API    string
	Case   string // empty: in any case
	Path   string
	Ours   string
	Theirs string
	Row    string // of docs/DEVIATIONS.md: its first cell
}

// deliberate is the list.
func deliberate() []entry {
	return []entry{}
}
