package flowcontrol

// heedsReadings says whether a policy makes use of readings. Where none does, nobody need look.
func heedsReadings(policy string) bool {
	switch policy {
	case "none", "unlimited", "fixed", "aimd", "gradient":
		return false
	}
	return true
}
