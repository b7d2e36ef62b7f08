package noninterference

func hostile() []op { return nil }
