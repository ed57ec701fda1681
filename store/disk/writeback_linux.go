package disk

import (
	"os"
	"syscall"
)

const syncFileRangeWrite = 2 // SYNC_FILE_RANGE_WRITE of sync_file_range(2)

// startWriteback asks the system to begin writing a stretch of f to the medium, and doesn't wait
// for it. It promises nothing: only Sync does.
func startWriteback(f *os.File, offset, n int64) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SyncFileRange(int(fd), offset, n, syncFileRangeWrite)
	})
}
