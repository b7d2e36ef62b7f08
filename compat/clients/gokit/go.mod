module github.com/queen-mq/queen-edge/compat/clients/gokit

go 1.26.0
