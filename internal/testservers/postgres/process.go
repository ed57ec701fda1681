//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// tree returns the ids of a process and of its children.
func tree(pid int) []int {
	pids := []int{pid}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, field := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unprivileged returns the attributes of a process that is not root's: PostgreSQL refuses root.
func unprivileged() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		uid, gid := nobody()
		attributes.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return attributes
}

// nobody returns the ids of a user who is not root.
func nobody() (uid, gid uint32) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		if gid, err := strconv.ParseUint(u.Gid, 10, 32); err == nil {
			return uint32(uid), uint32(gid)
		}
	}
	return 65534, 65534
}

// newDirectory creates a temporary directory that belongs to the user of the servers.
func newDirectory() (string, error) {
	directory, err := os.MkdirTemp("", "tidefill-postgres-")
	if err != nil || os.Getuid() != 0 {
		return directory, err
	}
	uid, gid := nobody()
	if err := os.Chown(directory, int(uid), int(gid)); err != nil {
		return "", errors.Join(err, os.RemoveAll(directory))
	}
	return directory, nil
}
