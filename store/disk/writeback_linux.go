package disk

import (
	"os"
	"syscall"
)

const syncFileRangeWrite = 2 // SYNC_FILE_RANGE_WRITE of sync_file_range(2)

// startWriteback has the system start to write a range of f to the medium, and does not wait for
// it. Only Sync makes it durable.
func startWriteback(f *os.File, offset, n int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SyncFileRange(int(fd), offset, n, syncFileRangeWrite)
	})
}
