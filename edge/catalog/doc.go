// Package catalog knows which topics a tenant has and how many partitions each
// shows. It keeps one listing per tenant for a few seconds, shares refreshes,
// and creates missing topics (kafka-surface §6).
package catalog
