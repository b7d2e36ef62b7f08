module github.com/queen-mq/queen-edge/compat/faults/txn/gokit

go 1.26.0
