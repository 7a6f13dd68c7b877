package wire

// Exit codes of the command line.
const (
	ExitOK               = 0
	ExitUsage            = 1 // usage, or something local
	ExitServer           = 2 // server or network
	ExitNotFound         = 3
	ExitRevisionMismatch = 4 // the store is not in the state the caller expected
	ExitStaleOwner       = 5 // the caller's token or lease does not count here
	ExitLockHeld         = 6 // lock held, or the wait is over
	ExitUnknown          = 7 // outcome unknown
)
