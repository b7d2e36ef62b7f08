package cloud

func beyond() []scenario { return nil }
