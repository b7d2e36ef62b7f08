// Package topicconf is the vocabulary of topic configs: which keys there are,
// what each accepts, what it means to the cell, and how a topic's settings are
// kept in its record (kafka-surface §10.4, cell-http §4.8). It decides and never
// asks.
package topicconf
