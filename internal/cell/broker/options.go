package broker

// Options are a queue's settings with the names and defaults of cell-http §3.2.
type Options struct {
	Namespace                   string `json:"namespace"`
	Task                        string `json:"task"`
	Priority                    int64  `json:"priority"`
	LeaseTime                   int64  `json:"leaseTime"` // s
	RetryLimit                  int64  `json:"retryLimit"`
	RetryDelay                  int64  `json:"retryDelay"` // ms
	TTL                         int64  `json:"ttl"`        // s
	MaxSize                     int64  `json:"maxSize"`
	DeadLetterQueue             bool   `json:"deadLetterQueue"`
	DLQAfterMaxRetries          bool   `json:"dlqAfterMaxRetries"`
	DelayedProcessing           int64  `json:"delayedProcessing"`         // s
	WindowBuffer                int64  `json:"windowBuffer"`              // s
	RetentionSeconds            int64  `json:"retentionSeconds"`          // s
	CompletedRetentionSeconds   int64  `json:"completedRetentionSeconds"` // s
	RetentionEnabled            bool   `json:"retentionEnabled"`
	EncryptionEnabled           bool   `json:"encryptionEnabled"`
	MaxWaitTimeSeconds          int64  `json:"maxWaitTimeSeconds"` // s
	MinPopWaitTime              int64  `json:"minPopWaitTime"`     // ms, 0–60000
	DedupWindowSeconds          int64  `json:"dedupWindowSeconds"` // s
	RetentionSinkHold           string `json:"retentionSinkHold"`
	RetentionSinkHoldMaxSeconds int64  `json:"retentionSinkHoldMaxSeconds"` // s, 60–31536000
}

// DefaultOptions are what a queue has that nobody configured.
func DefaultOptions() Options {
	return Options{
		LeaseTime: 300, RetryLimit: 3, RetryDelay: 1000, TTL: 3600,
		DeadLetterQueue: true, DLQAfterMaxRetries: true,
		DedupWindowSeconds: 3600, RetentionSinkHoldMaxSeconds: 604800,
	}
}
