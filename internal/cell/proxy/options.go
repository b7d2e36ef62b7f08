package proxy

import (
	"fmt"
	"math"

	"github.com/go-faster/jx"

	"github.com/queen-mq/queen-edge/internal/cell/broker"
)

// optionNames lists a queue's options in the order answers show them
// (cell-http §3.2).
func optionNames() [21]string {
	return [...]string{
		"namespace", "task", "priority", "leaseTime", "retryLimit", "retryDelay", "ttl", "maxSize",
		"deadLetterQueue", "dlqAfterMaxRetries", "delayedProcessing", "windowBuffer", "retentionSeconds",
		"completedRetentionSeconds", "retentionEnabled", "encryptionEnabled", "maxWaitTimeSeconds",
		"minPopWaitTime", "dedupWindowSeconds", "retentionSinkHold", "retentionSinkHoldMaxSeconds",
	}
}

// optionField finds an option by name: a *string, *int64 or *bool, or nil for
// a name that is no option.
func optionField(o *broker.Options, name string) any {
	switch name {
	case "namespace":
		return &o.Namespace
	case "task":
		return &o.Task
	case "priority":
		return &o.Priority
	case "leaseTime":
		return &o.LeaseTime
	case "retryLimit":
		return &o.RetryLimit
	case "retryDelay":
		return &o.RetryDelay
	case "ttl":
		return &o.TTL
	case "maxSize":
		return &o.MaxSize
	case "deadLetterQueue":
		return &o.DeadLetterQueue
	case "dlqAfterMaxRetries":
		return &o.DLQAfterMaxRetries
	case "delayedProcessing":
		return &o.DelayedProcessing
	case "windowBuffer":
		return &o.WindowBuffer
	case "retentionSeconds":
		return &o.RetentionSeconds
	case "completedRetentionSeconds":
		return &o.CompletedRetentionSeconds
	case "retentionEnabled":
		return &o.RetentionEnabled
	case "encryptionEnabled":
		return &o.EncryptionEnabled
	case "maxWaitTimeSeconds":
		return &o.MaxWaitTimeSeconds
	case "minPopWaitTime":
		return &o.MinPopWaitTime
	case "dedupWindowSeconds":
		return &o.DedupWindowSeconds
	case "retentionSinkHold":
		return &o.RetentionSinkHold
	case "retentionSinkHoldMaxSeconds":
		return &o.RetentionSinkHoldMaxSeconds
	default:
		return nil
	}
}

// optionRange is the legal range of an integer option. Retention may be as
// long as an int64 holds: clients say "forever" that way.
func optionRange(name string) (lowest, highest int64) {
	switch name {
	case "priority":
		return math.MinInt64, math.MaxInt64
	case "minPopWaitTime":
		return 0, 60_000
	case "retentionSinkHoldMaxSeconds":
		return 60, 31_536_000
	default:
		return 0, math.MaxInt64
	}
}

// setting is one option a configure names, checked but not yet applied.
type setting struct {
	name    string
	initial bool // an explicit null: back to the default
	text    string
	number  int64
	flag    bool
}

// apply puts the setting into o.
func (s *setting) apply(o, initial *broker.Options) {
	switch field := optionField(o, s.name).(type) {
	case *string:
		*field = s.text
		if s.initial {
			*field = *optionField(initial, s.name).(*string)
		}
	case *int64:
		*field = s.number
		if s.initial {
			*field = *optionField(initial, s.name).(*int64)
		}
	case *bool:
		*field = s.flag
		if s.initial {
			*field = *optionField(initial, s.name).(*bool)
		}
	}
}

// readSetting reads the value of a known option.
func readSetting(d *jx.Decoder, name string, kind any) (setting, *refusal) {
	s := setting{name: name}
	if d.Next() == jx.Null {
		s.initial = true
		return s, skipValue(d)
	}
	var ok bool
	var err error
	switch kind.(type) {
	case *string:
		s.text, ok, err = stringValue(d)
	case *bool:
		s.flag, ok, err = boolValue(d)
	default:
		s.number, ok, err = integer(d)
	}
	if err != nil {
		return s, badBody()
	}
	if !ok {
		return s, badRequest(fmt.Sprintf("%s has the wrong type", name))
	}
	if _, isInt := kind.(*int64); isInt {
		if lowest, highest := optionRange(name); s.number < lowest || s.number > highest {
			return s, badRequest(fmt.Sprintf("%s must be from %d to %d", name, lowest, highest))
		}
	}
	return s, nil
}

// options renders every option, and maxSize under its second name.
func (a *answer) options(o *broker.Options) {
	a.RawStr(`{`)
	for _, name := range optionNames() {
		a.Str(name)
		a.RawStr(`:`)
		switch field := optionField(o, name).(type) {
		case *string:
			a.Str(*field)
		case *int64:
			a.int(*field)
		case *bool:
			a.Bool(*field)
		}
		a.RawStr(`,`)
	}
	a.RawStr(`"maxQueueSize":`)
	a.int(o.MaxSize)
	a.RawStr(`}`)
}
